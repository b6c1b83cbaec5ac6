// SPDX-License-Identifier: Apache-2.0
#include "data/Shuffle.hpp"

#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <set>

using namespace taper;

TEST_CASE("orders are permutations that depend on each argument") {
  const auto order = shuffled(10, 5, 0);
  CHECK(std::set<int>(order.begin(), order.end()).size() == 10);
  CHECK(order == shuffled(10, 5, 0));
  CHECK(order == shuffled(10, 5, 0, 0));
  CHECK(order != shuffled(10, 6, 0));
  CHECK(order != shuffled(10, 5, 1));
  CHECK(order != shuffled(10, 5, 0, 1));
  CHECK(shuffled(1, 5, 3) == std::vector<int>{0});
  CHECK(shuffled(0, 5, 3).empty());
}
