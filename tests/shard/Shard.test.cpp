// SPDX-License-Identifier: Apache-2.0
#include "shard/Shard.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>

using namespace taper;

TEST_CASE("ranges know what they contain") {
  const Range range{2, 5};
  CHECK(range.size() == 3);
  CHECK_FALSE(range.empty());
  CHECK(Range{3, 3}.empty());
  CHECK(range.contains(2));
  CHECK(range.contains(4));
  CHECK_FALSE(range.contains(5));
  CHECK_FALSE(range.contains(1));
  CHECK(range.contains(Range{2, 5}));
  CHECK(range.contains(Range{3, 4}));
  CHECK_FALSE(range.contains(Range{1, 4}));
  CHECK_FALSE(range.contains(Range{4, 6}));
}

TEST_CASE("shards tile the units in order, with sizes that differ by at most one") {
  for (int units = 0; units <= 200; ++units) {
    for (int degree = 1; degree <= 24; ++degree) {
      int covered = 0;
      for (int i = 0; i < degree; ++i) {
        const Range shard = shard_range(units, degree, i);
        REQUIRE(shard.begin == covered);
        REQUIRE(shard.size() >= units / degree);
        REQUIRE(shard.size() <= units / degree + 1);
        covered = shard.end;
      }
      REQUIRE(covered == units);
    }
  }
}

TEST_CASE("boundaries are floor(i * units / degree)") {
  CHECK(shard_range(6, 4, 0) == Range{0, 1});
  CHECK(shard_range(6, 4, 1) == Range{1, 3});
  CHECK(shard_range(6, 4, 2) == Range{3, 4});
  CHECK(shard_range(6, 4, 3) == Range{4, 6});
  CHECK(shard_range(3, 2, 0) == Range{0, 1});
  CHECK(shard_range(3, 2, 1) == Range{1, 3});
}

TEST_CASE("shards of a multiple of the degree nest, for any number of units") {
  for (int units = 1; units <= 120; ++units) {
    for (int degree = 1; degree <= 8; ++degree) {
      for (int factor = 2; factor <= 4; ++factor) {
        for (int i = 0; i < degree * factor; ++i) {
          const Range outer = shard_range(units, degree, i / factor);
          const Range inner = shard_range(units, degree * factor, i);
          REQUIRE(outer.begin <= inner.begin);
          REQUIRE(inner.end <= outer.end);
        }
      }
    }
  }
}

TEST_CASE("shard_of_unit finds the shard that owns a unit") {
  for (int units = 1; units <= 130; ++units) {
    for (int degree = 1; degree <= 20; ++degree) {
      for (int unit = 0; unit < units; ++unit) {
        const int owner = shard_of_unit(units, degree, unit);
        REQUIRE(owner >= 0);
        REQUIRE(owner < degree);
        REQUIRE(shard_range(units, degree, owner).contains(unit));
      }
    }
  }
}

TEST_CASE("large unit counts do not overflow") {
  constexpr int kMost = std::numeric_limits<int>::max();
  CHECK(shard_range(kMost, 1024, 1023).end == kMost);
  CHECK(shard_of_unit(kMost, 1024, kMost - 1) == 1023);
}
