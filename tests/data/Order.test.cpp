// SPDX-License-Identifier: Apache-2.0
#include "data/Order.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <set>
#include <vector>

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Shuffle = ExampleOrder::Shuffle;

namespace {

std::vector<int> visit(const ExampleOrder& order, std::uint64_t from, std::uint64_t to) {
  std::vector<int> list;
  for (std::uint64_t at = from; at < to; ++at) list.push_back(order.index_at(at));
  return list;
}

using Items = std::vector<std::int64_t>;

Items take(const PromptMixture& mixture, std::uint64_t first, std::uint64_t count) {
  Items items;
  for (std::uint64_t p = first; p < first + count; ++p) items.push_back(mixture.at(p));
  return items;
}

// How often items of each list come.
std::map<int, int> by_list(const Items& items, const std::vector<int>& ends) {
  std::map<int, int> counts;
  for (const std::int64_t item : items) {
    int list = 0;
    while (item >= ends[list]) ++list;
    ++counts[list];
  }
  return counts;
}

}  // namespace

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

TEST_CASE("passes have their orders, whichever was asked for before") {
  const ShuffledPasses passes(10, 5, 3);
  for (const std::uint64_t pass : {0, 2, 1, 1, 0}) {
    CHECK(passes.order(pass) == shuffled(10, 5, pass, 3));
    CHECK(passes.at(10 * pass + 7) == shuffled(10, 5, pass, 3)[7]);
  }
}

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

TEST_CASE("without weights several lists are one") {
  const PromptMixture one({10}, {}, 5), three({3, 5, 2}, {}, 5);
  CHECK(take(one, 0, 35) == take(three, 0, 35));
  const auto order = shuffled(10, 5, 2);
  CHECK(take(one, 20, 10) == Items(order.begin(), order.end()));
  CHECK(take(one, 0, 10) != take(one, 10, 10));
}

TEST_CASE("with weights each block has the exact shares, and each list its own passes") {
  const std::vector<int> sizes{7, 50, 4}, ends{7, 57, 61};
  const PromptMixture mixture(sizes, {6, 3, 3}, 11);  // 2 : 1 : 1
  for (std::uint64_t block = 0; block < 30; ++block)
    CHECK(by_list(take(mixture, 4 * block, 4), ends) == std::map<int, int>{{0, 2}, {1, 1}, {2, 1}});
  // The first passes over the smallest list.
  Items last;
  for (const std::int64_t item : take(mixture, 0, 4 * 8))
    if (item >= 57) last.push_back(item);
  CHECK(std::set<std::int64_t>(last.begin(), last.begin() + 4).size() == 4);
  CHECK(std::set<std::int64_t>(last.begin() + 4, last.end()).size() == 4);
}

TEST_CASE("a position gives the same whatever was asked before") {
  const PromptMixture mixture({7, 50}, {0.7, 0.3}, 3), other({7, 50}, {0.7, 0.3}, 4);
  const Items forward = take(mixture, 0, 300);
  const PromptMixture again({7, 50}, {0.7, 0.3}, 3);
  for (int p = 299; p >= 0; --p) REQUIRE(again.at(static_cast<std::uint64_t>(p)) == forward[p]);
  CHECK(take(other, 0, 300) != forward);
}

TEST_CASE("broken weights come as near as ten thousand places allow") {
  const std::vector<int> ends{1, 2, 3};
  const PromptMixture mixture({1, 1, 1}, {1.0 / 3, 1.0 / 3, 1.0 / 3}, 1);
  const auto counts = by_list(take(mixture, 0, 10000), ends);
  for (const auto& [list, count] : counts) CHECK((count == 3333 || count == 3334));
}

TEST_CASE("weights that cannot be are told") {
  const auto problem = [](std::size_t lists, const std::vector<double>& weights) {
    const auto list = PromptMixture::problems("Data/Weights", lists, weights);
    REQUIRE(list.size() == 1);
    return list.front();
  };
  CHECK_THAT(problem(2, {1}), ContainsSubstring("Data/Weights has 1 number for 2 files"));
  CHECK_THAT(problem(2, {1, 0}), ContainsSubstring("Data/Weights has 0"));
  CHECK_THAT(problem(2, {1, -3}), ContainsSubstring("-3"));
  CHECK_THAT(problem(2, {1, 1e-9}), ContainsSubstring("ten-thousandth"));
  CHECK(PromptMixture::problems("Data/Weights", 2, {}).empty());
  CHECK(PromptMixture::problems("Data/Weights", 2, {9999, 1}).empty());
}
