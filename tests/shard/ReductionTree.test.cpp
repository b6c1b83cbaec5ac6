// SPDX-License-Identifier: Apache-2.0
#include "shard/ReductionTree.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/Error.hpp"
#include "base/Random.hpp"
#include "support/Shards.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Floats whose sums depend on the order: magnitudes over eight decades, both signs.
std::vector<float> uneven_floats(int count, int seed) {
  RandomStream random(2026, RandomPurpose::kTest, 0, static_cast<std::uint64_t>(seed));
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    float value = static_cast<float>(random.uniform() - 0.5);
    for (std::uint64_t n = random.below(9); n > 0; --n) value *= 10.0f;
    values.push_back(value);
  }
  return values;
}

// Runs a program and returns what remains on the stack.
std::vector<float> run(const std::vector<int>& program, const std::vector<float>& pushed) {
  REQUIRE(program.size() == pushed.size());
  std::vector<float> stack;
  for (std::size_t i = 0; i < program.size(); ++i) {
    stack.push_back(pushed[i]);
    for (int n = 0; n < program[i]; ++n) {
      REQUIRE(stack.size() >= 2);
      const float upper = stack.back();
      stack.pop_back();
      stack.back() = stack.back() + upper;
    }
  }
  return stack;
}

// The sum over shards: local programs, then the finish program.
float sharded_sum(const ReductionTree& tree, const std::vector<Range>& shards,
                  const std::vector<float>& leaves) {
  std::vector<float> partials;
  for (const Range& shard : shards) {
    const auto left =
        run(tree.local_program(shard), {leaves.begin() + shard.begin, leaves.begin() + shard.end});
    REQUIRE(static_cast<int>(left.size()) == tree.partials(shard));
    partials.insert(partials.end(), left.begin(), left.end());
  }
  const auto result = run(tree.finish_program(shards), partials);
  REQUIRE(result.size() == 1);
  return result[0];
}

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// The order of numerics.md in its plainest form, written again: node j of level l over [floor(j
// n/2^l), ...).
struct PlainTree {
  int units, leaves_per_unit;
  const std::vector<float>& leaves;

  bool sum(int begin, int end, int level, std::int64_t slot, int items, int first, bool over_units,
           float& result) const {
    if (begin == end) return false;
    if (over_units && end - begin == 1) {
      return sum(0, leaves_per_unit, 0, 0, leaves_per_unit, begin * leaves_per_unit, false, result);
    }
    if (!over_units && end - begin == 1) {
      result = leaves[static_cast<std::size_t>(first + begin)];
      return true;
    }
    const std::int64_t denominator = std::int64_t{1} << (level + 1);
    const int middle = static_cast<int>((2 * slot + 1) * items / denominator);
    float lower = 0, upper = 0;
    const bool has_lower = sum(begin, middle, level + 1, 2 * slot, items, first, over_units, lower);
    const bool has_upper =
        sum(middle, end, level + 1, 2 * slot + 1, items, first, over_units, upper);
    result = has_lower && has_upper ? lower + upper : has_lower ? lower : upper;
    return true;
  }
  float sum() const {
    float result = 0;
    sum(0, units, 0, 0, units, 0, true, result);
    return result;
  }
};

}  // namespace

TEST_CASE("a power-of-two shard is exactly one node, whatever the number of units") {
  for (int units = 1; units <= 200; ++units) {
    for (const int leaves_per_unit : {1, 2, 3, 5}) {
      const ReductionTree tree(units, leaves_per_unit);
      for (int degree = 1; degree <= 256; degree *= 2) {
        for (const Range& shard : shards_of(units, leaves_per_unit, degree)) {
          REQUIRE(tree.partials(shard) == (shard.empty() ? 0 : 1));
        }
      }
    }
  }
}

TEST_CASE("cut below a unit, power-of-two shards stay one node where units are a power of two") {
  for (const int units : {1, 2, 4, 8}) {
    for (int leaves_per_unit = 1; leaves_per_unit <= 9; ++leaves_per_unit) {
      const ReductionTree tree(units, leaves_per_unit);
      for (int degree = units; degree <= 64; degree *= 2) {
        for (int i = 0; i < degree; ++i) {
          const Range shard = shard_range(tree.leaves(), degree, i);
          REQUIRE(tree.partials(shard) == (shard.empty() ? 0 : 1));
        }
      }
    }
  }
}

TEST_CASE("the order is that of the recursive definition") {
  for (int units = 1; units <= 70; ++units) {
    for (const int leaves_per_unit : {1, 2, 3, 4, 7}) {
      const ReductionTree tree(units, leaves_per_unit);
      const auto leaves = uneven_floats(tree.leaves(), units);
      const float expected = PlainTree{units, leaves_per_unit, leaves}.sum();
      const auto result = run(tree.local_program({0, tree.leaves()}), leaves);
      REQUIRE(result.size() == 1);
      REQUIRE(bits(result[0]) == bits(expected));
    }
  }
}

TEST_CASE("shards of every degree give the bits of the single shard") {
  for (int units = 1; units <= 200; ++units) {
    const int leaves_per_unit = 1 + units % 4;
    const ReductionTree tree(units, leaves_per_unit);
    const auto leaves = uneven_floats(tree.leaves(), units);
    const float whole = run(tree.local_program({0, tree.leaves()}), leaves)[0];
    for (int degree = 1; degree <= 17; ++degree) {
      REQUIRE(bits(sharded_sum(tree, shards_of(units, leaves_per_unit, degree), leaves)) ==
              bits(whole));
    }
  }
}

TEST_CASE("any tiling, also inside units and with empty shards, gives the same bits") {
  RandomStream random(7, RandomPurpose::kTest, 0, 0);
  for (int trial = 0; trial < 3000; ++trial) {
    const int units = static_cast<int>(random.between(1, 40));
    const int leaves_per_unit = static_cast<int>(random.between(1, 6));
    const ReductionTree tree(units, leaves_per_unit);
    std::vector<int> cuts{0, tree.leaves()};
    for (auto n = random.between(0, 9); n > 0; --n) {
      cuts.push_back(static_cast<int>(random.between(0, tree.leaves())));
    }
    std::sort(cuts.begin(), cuts.end());
    std::vector<Range> shards;
    for (std::size_t i = 1; i < cuts.size(); ++i) shards.push_back({cuts[i - 1], cuts[i]});
    const auto leaves = uneven_floats(tree.leaves(), trial);
    const float whole = run(tree.local_program({0, tree.leaves()}), leaves)[0];
    REQUIRE(bits(sharded_sum(tree, shards, leaves)) == bits(whole));
  }
}

TEST_CASE("the test data tell orders apart") {
  // Otherwise the equalities above would mean nothing.
  const auto leaves = uneven_floats(64, 1);
  const float chain = std::accumulate(leaves.begin(), leaves.end(), 0.0f);
  const float tree = run(ReductionTree(64, 1).local_program({0, 64}), leaves)[0];
  CHECK(bits(chain) != bits(tree));
}

TEST_CASE("few partials for shards of other degrees") {
  // The cost that the bisection of numerics.md was chosen for.
  for (const int units : {9, 24, 56, 68}) {
    for (const int degree : {3, 5, 6, 7}) {
      const ReductionTree tree(units, 1);
      for (int i = 0; i < degree; ++i) {
        REQUIRE(tree.partials(shard_range(units, degree, i)) <= 6);
      }
    }
  }
}

TEST_CASE("bad trees and shards are refused") {
  CHECK_THROWS_AS(ReductionTree(0, 1), Error);
  CHECK_THROWS_AS(ReductionTree(1, 0), Error);
  const ReductionTree tree(8, 1);
  CHECK_THROWS_AS(tree.finish_program({{0, 3}, {4, 8}}), Error);
  CHECK_THROWS_AS(tree.finish_program({}), Error);
}
