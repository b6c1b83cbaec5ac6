// SPDX-License-Identifier: Apache-2.0
#include "simulate/LengthLaw.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>

using namespace taper;

TEST_CASE("laws have the shapes that they are named for") {
  const int limit = 2000, count = 5000;
  for (const LengthLaw law : all_length_laws()) {
    const auto lengths = draw_lengths(law, 1, 3, count, limit);
    REQUIRE(lengths.size() == count);
    CHECK(*std::min_element(lengths.begin(), lengths.end()) >= 1);
    CHECK(*std::max_element(lengths.begin(), lengths.end()) <= limit);
    CHECK(lengths == draw_lengths(law, 1, 3, count, limit));
    if (law != LengthLaw::kTruncated) CHECK(lengths != draw_lengths(law, 1, 4, count, limit));
  }
  const auto share_above = [&](LengthLaw law, int length) {
    const auto lengths = draw_lengths(law, 1, 3, count, limit);
    return static_cast<double>(
               std::count_if(lengths.begin(), lengths.end(), [&](int x) { return x > length; })) /
           count;
  };
  CHECK(std::abs(share_above(LengthLaw::kHeavyTail, limit / 2) - 0.1085) < 0.015);
  CHECK(share_above(LengthLaw::kTruncated, limit - 1) == 1.0);
  CHECK(share_above(LengthLaw::kNarrow, limit / 2 + limit / 50) == 0.0);
  CHECK(std::abs(share_above(LengthLaw::kBimodal, limit / 2) - 0.2) < 0.02);
}

TEST_CASE("of stragglers there is one in each block of responses, not always at the same place") {
  const int limit = 1000;
  std::set<std::ptrdiff_t> places;
  for (int iteration = 0; iteration < 8; ++iteration) {
    const auto lengths = draw_lengths(LengthLaw::kStraggler, 1, iteration, 96, limit);
    for (int block = 0; block < 3; ++block) {
      const auto begin = lengths.begin() + 32 * block, end = begin + 32;
      CHECK(std::count(begin, end, limit) == 1);
      CHECK(std::count_if(begin, end, [&](int x) { return x < limit / 5; }) == 31);
      places.insert(std::find(begin, end, limit) - begin);
    }
  }
  CHECK(places.size() > 8);
}

TEST_CASE("drifting lengths grow, then shrink") {
  const auto median = [](int iteration) {
    auto lengths = draw_lengths(LengthLaw::kDrifting, 1, iteration, 2001, 4000);
    std::sort(lengths.begin(), lengths.end());
    return lengths[1000];
  };
  CHECK(median(7) > median(0) * 13 / 10);
  CHECK(median(15) < median(8));
}

TEST_CASE("a described tail has the share that it is asked for") {
  TailLaw law;
  CHECK(std::abs(law.share_above(8192) - 0.1085) < 1e-12);
  for (const double likeness : {0.0, 0.5}) {
    law.likeness = likeness;
    const auto lengths = draw_lengths(law, 3, 0, 20000, 2, 16384);
    REQUIRE(lengths.size() == 40000);
    const auto share = [&](int tokens) {
      const auto above = [&](int x) { return x > tokens; };
      return static_cast<double>(std::count_if(lengths.begin(), lengths.end(), above)) / 40000;
    };
    CHECK(std::abs(share(8192) - 0.1085) < 0.006);
    CHECK(std::abs(share(2000) - law.share_above(2000)) < 0.01);
    CHECK(*std::max_element(lengths.begin(), lengths.end()) == 16384);
    int alike = 0;  // both samples of a prompt on one side of the median
    const auto is_long = [&](int x) { return law.share_above(x) < 0.5; };
    for (std::size_t i = 0; i < lengths.size(); i += 2)
      alike += is_long(lengths[i]) == is_long(lengths[i + 1]);
    CHECK(std::abs(alike / 20000.0 - (likeness > 0 ? 2.0 / 3 : 0.5)) < 0.02);
  }
}
