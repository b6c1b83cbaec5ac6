// SPDX-License-Identifier: Apache-2.0
#include "data/ExampleOrder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <vector>

using namespace taper;
using Shuffle = ExampleOrder::Shuffle;

namespace {

std::vector<int> visit(const ExampleOrder& order, std::uint64_t from, std::uint64_t to) {
  std::vector<int> list;
  for (std::uint64_t at = from; at < to; ++at) list.push_back(order.index_at(at));
  return list;
}

}  // namespace

TEST_CASE("each pass meets every example once, in an order of its own that follows from the seed") {
  const ExampleOrder order(20, 3, Shuffle::kYes, 0);
  const auto first = visit(order, 0, 20), second = visit(order, 20, 40);
  CHECK(std::set<int>(first.begin(), first.end()).size() == 20);
  CHECK(std::set<int>(second.begin(), second.end()).size() == 20);
  CHECK(first != second);
  CHECK(visit(order, 0, 20) == first);  // after another pass was asked for
  CHECK(visit(ExampleOrder(20, 3, Shuffle::kYes, 5), 20, 40) == second);
  CHECK(visit(ExampleOrder(20, 4, Shuffle::kYes, 0), 0, 20) != first);
}

TEST_CASE("without shuffling the order is that of the files, in every pass") {
  const ExampleOrder order(3, 1, Shuffle::kNo, 2);
  CHECK(visit(order, 0, 6) == std::vector<int>{0, 1, 2, 0, 1, 2});
  CHECK(order.end() == 6);
  CHECK(order.passes(3) == 1.0);
}
