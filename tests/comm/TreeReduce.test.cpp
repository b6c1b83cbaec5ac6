// SPDX-License-Identifier: Apache-2.0
#include "comm/TreeReduce.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>

#include "base/Error.hpp"
#include "base/Random.hpp"
#include "comm/Collectives.hpp"
#include "comm/GroupCache.hpp"
#include "support/Bits.hpp"
#include "support/Shards.hpp"

using namespace taper;
using namespace taper::test;

namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// Leaf sums (leaves, floats), the same on every rank, over eight decades so that the order shows.
std::vector<float> leaf_sums(int leaves, std::int64_t floats) {
  RandomStream random(5, RandomPurpose::kTest, 0, 0);
  std::vector<float> values(at(leaves * floats));
  for (auto& value : values) {
    value = static_cast<float>((random.uniform() - 0.5) * std::pow(10.0, double(random.below(9))));
  }
  return values;
}

// Partials (partials, floats) of a range of leaves, on a plain stack machine.
std::vector<float> local_partials(const ReductionTree& tree, Range shard,
                                  const std::vector<float>& leaves, std::int64_t floats) {
  std::vector<std::vector<float>> stack;
  const auto program = tree.local_program(shard);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto begin = leaves.begin() + (shard.begin + static_cast<int>(i)) * floats;
    stack.emplace_back(begin, begin + floats);
    for (int n = 0; n < program[i]; ++n) {
      const auto upper = stack.back();
      stack.pop_back();
      for (std::size_t e = 0; e < upper.size(); ++e) stack.back()[e] = stack.back()[e] + upper[e];
    }
  }
  std::vector<float> flat;
  for (const auto& value : stack) flat.insert(flat.end(), value.begin(), value.end());
  return flat;
}

constexpr float kCanary = 1234.5f;

// Sums over the group and compares with the sum of a single rank, bit for bit.
void check_sum(const Group& group, const ReductionTree& tree, const std::vector<Range>& shards,
               int rows, int cols, TreeReduceOptions options) {
  const std::int64_t floats = std::int64_t{rows} * cols;
  const auto leaves = leaf_sums(tree.leaves(), floats);
  const auto expected = local_partials(tree, {0, tree.leaves()}, leaves, floats);
  const auto partials = local_partials(tree, shards[at(group.rank())], leaves, floats);
  const TreeReducer reducer(tree, shards, options);
  REQUIRE(reducer.partials(group.rank()) * floats == static_cast<std::int64_t>(partials.size()));

  const std::size_t space = reducer.workspace_floats(rows, cols);
  std::vector<float> out(at(floats)), workspace(space + 1, kCanary);
  const auto untouched = partials;
  reducer.sum(group, out.data(), partials.data(), rows, cols, workspace.data());
  REQUIRE(same_bits(out, expected));
  REQUIRE(workspace.back() == kCanary);
  REQUIRE(same_bits(partials, untouched));
}

}  // namespace

TEST_CASE("the sum over ranks has the bits of one rank, gathered and sliced") {
  const GroupCache groups(MPI_COMM_WORLD, {});
  const Group& world = groups.world();
  for (const int units : {1, 2, 3, 5, 8, 9, 24}) {
    for (const int leaves_per_unit : {1, 3}) {
      const ReductionTree tree(units, leaves_per_unit);
      const auto shards = shards_of(units, leaves_per_unit, world.size());
      for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 7}, {5, 3}, {9, 70}}) {
        check_sum(world, tree, shards, rows, cols, {.slice_bytes = 1 << 30});
        check_sum(world, tree, shards, rows, cols, {.slice_bytes = 0});
      }
    }
  }
}

TEST_CASE("lopsided shards, several partials per rank, and blocks longer than the cache block") {
  const GroupCache groups(MPI_COMM_WORLD, {});
  const Group& world = groups.world();
  const ReductionTree tree(7, 2);
  std::vector<Range> shards;
  int begin = 0;
  for (int r = 0; r < world.size(); ++r) {
    const int end = r + 1 == world.size() ? tree.leaves() : std::min(begin + 1 + 4 * r, 13);
    shards.push_back({begin, end});
    begin = end;
  }
  for (const std::int64_t slice_bytes : {0, 1 << 30}) {
    check_sum(world, tree, shards, 3, 1999, {.slice_bytes = slice_bytes});
  }
}

TEST_CASE("rank order is shard order: groups of the divisor chain") {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto chain = DivisorChain::of(ranks);
  const auto groups = GroupCache::for_chain(MPI_COMM_WORLD, chain);
  const ReductionTree tree(9, 2);
  for (const int degree : chain.degrees()) {
    check_sum(groups.tp_group(degree), tree, shards_of(9, 2, degree), 4, 33, {});
  }
}

TEST_CASE("the default threshold switches between the two ways without changing bits") {
  const GroupCache groups(MPI_COMM_WORLD, {});
  const Group& world = groups.world();
  const ReductionTree tree(6, 1);
  const auto shards = shards_of(6, 1, world.size());
  check_sum(world, tree, shards, 15, 512, {});
  check_sum(world, tree, shards, 16, 512, {});
}

TEST_CASE("a group of one copies only where it must") {
  const ReductionTree tree(4, 2);
  const TreeReducer reducer(tree, {{0, 8}});
  CHECK(reducer.partials(0) == 1);
  CHECK(reducer.workspace_floats(10, 10) == 0);
  std::vector<float> data{1, 2, 3, 4, 5, 6}, out(6);
  const auto before = data;
  reducer.sum(Group::self(), data.data(), data.data(), 2, 3, nullptr);
  CHECK(data == before);
  reducer.sum(Group::self(), out.data(), data.data(), 2, 3, nullptr);
  CHECK(out == before);
}

TEST_CASE("programs run on values in place") {
  std::vector<float> values{1, 10, 2, 20, 4, 40}, out(2);
  run_tree_program(std::vector{0, 1, 1}, out.data(), values.data(), 2);
  CHECK(out == std::vector<float>{7, 70});
  std::vector<float> one{3, 5};
  run_tree_program(std::vector{0}, out.data(), one.data(), 2);
  CHECK(out == one);
}

TEST_CASE("shards that are not an ascending tiling are refused") {
  const ReductionTree tree(8, 1);
  CHECK_THROWS_AS(TreeReducer(tree, {{4, 8}, {0, 4}}), Error);
  CHECK_THROWS_AS(TreeReducer(tree, {{0, 4}, {5, 8}}), Error);
  CHECK_THROWS_AS(TreeReducer(tree, {{0, 4}}), Error);
  CHECK_THROWS_AS(TreeReducer(tree, {}), Error);
  CHECK_THROWS_AS(TreeReducer(tree, {{0, 8}}, {.slice_bytes = -1}), Error);
}

TEST_CASE("results of ranks are added in the order of all_reduce_ordered_sum") {
  const Group world = Group::world(MPI_COMM_WORLD);
  for (const int length : {1, 7, 20000}) {  // gathered, and in slices
    RandomStream random(6, RandomPurpose::kTest, static_cast<std::uint64_t>(world.rank()), 0);
    std::vector<float> mine(at(length));
    for (auto& value : mine)
      value =
          static_cast<float>((random.uniform() - 0.5) * std::pow(10.0, double(random.below(9))));
    std::vector<float> expected = mine;
    all_reduce_ordered_sum(world, expected);
    const TreeReducer reducer = TreeReducer::over_ranks(world.size());
    std::vector<float> workspace(reducer.workspace_floats(1, length));
    reducer.sum(world, mine.data(), mine.data(), 1, length, workspace.data());
    CHECK(same_bits(mine, expected));
  }
}
