// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "shard/Shard.hpp"

namespace taper {

// The fixed order in which partial sums of a row-parallel product are added, whatever the number of
// shards.
//
// `units` are bisected recursively, node j of level l covering units [floor(j*n/2^l),
// floor((j+1)*n/2^l)); a node of one unit is bisected in the same way over its `leaves_per_unit`
// leaves. A shard of a power-of-two tensor-parallel degree is then exactly one node and contributes
// one partial sum; any other range of leaves contributes the maximal nodes that it covers. The two
// programs below are for a stack machine: push a value, then replace the two top values by their
// sum (lower + upper) so many times.
class ReductionTree {
 public:
  ReductionTree(int units, int leaves_per_unit);

  int leaves() const { return units_ * leaves_per_unit_; }

  // For each leaf of the range, ascending: the number of additions after pushing its sum. What
  // remains on the stack are the partial sums of the range, bottom first.
  std::vector<int> local_program(Range leaves) const;

  // The number of partial sums that remain of local_program(leaves).
  int partials(Range leaves) const;

  // For the partial sums of all shards in the order of their leaves: the number of additions after
  // pushing each. One value remains. The shards must tile [0, leaves()).
  std::vector<int> finish_program(const std::vector<Range>& shards) const;

 private:
  struct Node;
  Node root() const;
  bool split(const Node& node, Node& left, Node& right) const;

  template <class IsWhole, class OnWhole>
  int walk(const Node& node, const IsWhole& is_whole, const OnWhole& on_whole,
           std::vector<int>& program) const;

  int units_;
  int leaves_per_unit_;
};

}  // namespace taper
