// SPDX-License-Identifier: Apache-2.0
#include "planner/Fading.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("a sum is half of what it was after its half-life") {
  for (int half_life = 1; half_life <= kLongestHalfLife; ++half_life) {
    std::int64_t sum = 1'000'000'000;
    for (int i = 0; i < half_life; ++i) sum = faded(sum, half_life);
    INFO(half_life);
    CHECK(sum > 499'900'000);
    CHECK(sum <= 500'100'000);
  }
}

TEST_CASE("half-lives that are not in the table count as the nearest that are") {
  CHECK(faded(65536, 0) == faded(65536, 1));
  CHECK(faded(65536, 100) == faded(65536, kLongestHalfLife));
  CHECK(faded(0, 3) == 0);
}
