// SPDX-License-Identifier: Apache-2.0
#include "shard/ReductionTree.hpp"

#include <cstdint>

#include "base/Error.hpp"

namespace taper {

// A node of the bisection: slot j of 2^level over `count` items; items are units, or leaves inside
// one unit.
struct ReductionTree::Node {
  int level = 0;
  std::int64_t slot = 0;
  int unit = -1;  // the unit whose leaves are bisected; -1 while units are
  Range leaves;   // covered leaves, global index
};

ReductionTree::ReductionTree(int units, int leaves_per_unit)
    : units_(units), leaves_per_unit_(leaves_per_unit) {
  TAPER_INSIST(units > 0 && leaves_per_unit > 0, "reduction tree over "
                                                     << units << " units x " << leaves_per_unit
                                                     << " leaves (both must be positive)");
}

ReductionTree::Node ReductionTree::root() const {
  return {0, 0, -1, {0, leaves()}};
}

// Children of a node with more than one leaf; a child may be empty. False for a leaf.
bool ReductionTree::split(const Node& node, Node& left, Node& right) const {
  if (node.leaves.size() <= 1) return false;
  Node from = node;
  if (from.unit < 0 && from.leaves.size() == leaves_per_unit_) {
    from = {0, 0, node.leaves.begin / leaves_per_unit_,
            node.leaves};  // one unit left: bisect its leaves
  }
  const int items = from.unit < 0 ? units_ : leaves_per_unit_;
  const int width = from.unit < 0 ? leaves_per_unit_ : 1;
  const int offset = from.unit < 0 ? 0 : from.unit * leaves_per_unit_;
  const auto boundary = [&](std::int64_t slot) {
    return offset + width * static_cast<int>(slot * items >> (from.level + 1));
  };
  const std::int64_t s = 2 * from.slot;
  left = {from.level + 1, s, from.unit, {boundary(s), boundary(s + 1)}};
  right = {from.level + 1, s + 1, from.unit, {boundary(s + 1), boundary(s + 2)}};
  return true;
}

// Post-order walk. Subtrees for which is_whole(range) holds are handed to on_whole, which appends
// their pushes and additions to the program; their values stay apart. Returns the number of values
// left by the subtree.
template <class IsWhole, class OnWhole>
int ReductionTree::walk(const Node& node, const IsWhole& is_whole, const OnWhole& on_whole,
                        std::vector<int>& program) const {
  if (node.leaves.empty()) return 0;
  if (is_whole(node.leaves)) return on_whole(node, program);
  Node left, right;
  if (!split(node, left, right)) return 0;  // a leaf outside the range
  return walk(left, is_whole, on_whole, program) + walk(right, is_whole, on_whole, program);
}

std::vector<int> ReductionTree::local_program(Range leaves) const {
  std::vector<int> program;
  // Inside a whole node every pair of children is added.
  const auto sum_all = [&](const auto& self, const Node& node) -> void {
    if (node.leaves.empty()) return;
    Node left, right;
    if (!split(node, left, right)) {
      program.push_back(0);
      return;
    }
    self(self, left);
    self(self, right);
    if (!left.leaves.empty() && !right.leaves.empty()) ++program.back();
  };
  walk(
      root(), [&](Range r) { return leaves.contains(r); },
      [&](const Node& node, std::vector<int>&) {
        sum_all(sum_all, node);
        return 1;
      },
      program);
  TAPER_ENSURE(static_cast<int>(program.size()) == leaves.size());
  return program;
}

int ReductionTree::partials(Range leaves) const {
  std::vector<int> unused;
  return walk(
      root(), [&](Range r) { return leaves.contains(r); },
      [](const Node&, std::vector<int>&) { return 1; }, unused);
}

std::vector<int> ReductionTree::finish_program(const std::vector<Range>& shards) const {
  std::vector<int> program;
  const auto in_one_shard = [&](Range r) {
    for (const Range& shard : shards)
      if (shard.contains(r)) return true;
    return false;
  };
  const auto visit = [&](const auto& self,
                         const Node& node) -> bool {  // true if the subtree left one value
    if (node.leaves.empty()) return false;
    if (in_one_shard(node.leaves)) {
      program.push_back(0);
      return true;
    }
    Node left, right;
    const bool inner = split(node, left, right);
    TAPER_INSIST(inner, "leaf " << node.leaves.begin
                                << " belongs to no shard (shards must tile all leaves)");
    const bool has_left = self(self, left);
    const bool has_right = self(self, right);
    if (has_left && has_right) ++program.back();
    return has_left || has_right;
  };
  visit(visit, root());
  return program;
}

}  // namespace taper
