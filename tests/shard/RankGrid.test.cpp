// SPDX-License-Identifier: Apache-2.0
#include "shard/RankGrid.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <set>

#include "base/Error.hpp"
#include "shard/Shard.hpp"

using namespace taper;

namespace {

const std::vector<std::vector<int>> kChains{
    {1}, {1, 2}, {1, 2, 4, 8}, {1, 3, 6}, {1, 2, 6}, {1, 4, 16}, {1, 3, 12}, {1, 5}, {1, 2, 6, 30}};

}  // namespace

TEST_CASE("a chain of ranks has the smallest factors first") {
  CHECK(DivisorChain::of(1).degrees() == std::vector{1});
  CHECK(DivisorChain::of(8).degrees() == std::vector{1, 2, 4, 8});
  CHECK(DivisorChain::of(6).degrees() == std::vector{1, 2, 6});
  CHECK(DivisorChain::of(7).degrees() == std::vector{1, 7});
  CHECK(DivisorChain::of(1024).degrees().size() == 11);
  CHECK(DivisorChain({1, 3, 6}).has(3));
  CHECK_FALSE(DivisorChain({1, 3, 6}).has(2));
}

TEST_CASE("bad chains are refused") {
  CHECK_THROWS_AS(DivisorChain({}), Error);
  CHECK_THROWS_AS(DivisorChain({2, 4}), Error);
  CHECK_THROWS_AS(DivisorChain({1, 2, 3}), Error);
  CHECK_THROWS_AS(DivisorChain({1, 1}), Error);
  CHECK_THROWS_AS(DivisorChain({1, 4, 2}), Error);
  CHECK_THROWS_AS(DivisorChain::of(0), Error);
  CHECK_THROWS_AS(DivisorChain({1, 3, 6}).shard_index(0, 2), Error);
}

TEST_CASE("shard indices are bit-reversed local ranks for powers of two") {
  const DivisorChain chain({1, 2, 4, 8});
  CHECK(chain.group(8, 0) == std::vector{0, 4, 2, 6, 1, 5, 3, 7});
  CHECK(chain.group(4, 1) == std::vector{4, 6, 5, 7});
  CHECK(chain.group(2, 3) == std::vector{6, 7});
  CHECK(chain.group(1, 5) == std::vector{5});
}

TEST_CASE("groups partition the ranks and list them in shard order") {
  for (const auto& degrees : kChains) {
    const DivisorChain chain(degrees);
    for (const int degree : chain.degrees()) {
      std::set<int> seen;
      for (int g = 0; g < chain.ranks() / degree; ++g) {
        const auto members = chain.group(degree, g);
        REQUIRE(static_cast<int>(members.size()) == degree);
        for (int shard = 0; shard < degree; ++shard) {
          REQUIRE(members[shard] / degree == g);
          REQUIRE(chain.shard_index(members[shard], degree) == shard);
          REQUIRE(seen.insert(members[shard]).second);
        }
      }
      REQUIRE(static_cast<int>(seen.size()) == chain.ranks());
    }
  }
}

TEST_CASE("the shard at a larger degree lies inside the one at every smaller degree") {
  for (const auto& degrees : kChains) {
    const DivisorChain chain(degrees);
    for (const int units : {1, 2, 3, 5, 6, 8, 9, 24, 49, 56, 68, 200}) {
      for (int rank = 0; rank < chain.ranks(); ++rank) {
        Range held{0, units};
        for (const int degree : chain.degrees()) {
          const Range shard = shard_range(units, degree, chain.shard_index(rank, degree));
          REQUIRE(held.begin <= shard.begin);
          REQUIRE(shard.end <= held.end);
          held = shard;
        }
      }
    }
  }
}

TEST_CASE("layouts are read and written") {
  CHECK(parse_rank_grid("2x4") == RankGrid{2, 4});
  CHECK(parse_rank_grid("16X1") == RankGrid{16, 1});
  CHECK(to_string(RankGrid{2, 4}) == "2x4");
  CHECK(parse_rank_grid("2x4").ranks() == 8);
  CHECK(parse_rank_grid("2x4").replica_of(5) == 2);
  for (const char* bad : {"", "2", "2x", "x4", "0x4", "2x0", "-2x4", "2x4x1", "2x4 ", "2*4", "axb",
                          "99999999999x1"}) {
    CHECK_THROWS_AS(parse_rank_grid(bad), Error);
  }
}
