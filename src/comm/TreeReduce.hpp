// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/Group.hpp"
#include "shard/ReductionTree.hpp"

namespace taper {

struct TreeReduceOptions {
  // Results of at least this many bytes are summed in slices, one per rank (two exchanges of 1/n of
  // the data each); smaller ones by every rank itself (one exchange of all partials). The bits are
  // the same.
  std::int64_t slice_bytes = 32 * 1024;

  std::vector<std::string> problems() const;
};

// Finishes the sum of a row-parallel product over the ranks of a group in the order of its
// ReductionTree, so that the result has the bits of one rank doing all of it, whatever the number
// of ranks.
class TreeReducer {
 public:
  // shards[r] are the leaves of rank r of the group: ascending, together all leaves; a shard may be
  // empty.
  TreeReducer(const ReductionTree& tree, std::vector<Range> shards, TreeReduceOptions options = {});

  // The number of partial sums that rank r of the group brings: those of
  // ReductionTree::local_program(shards[r]).
  int partials(int rank) const {
    return static_cast<int>(partials_[static_cast<std::size_t>(rank)]);
  }

  // Floats of workspace for sum(), the same on every rank; 0 for a group of one.
  std::size_t workspace_floats(int rows, int cols) const;

  // out (rows, cols) = the sum, on every rank. partials (partials(rank), rows, cols). On a group of
  // one, out may be partials, and nothing is then copied; else they must not overlap. Collective
  // over `group`.
  void sum(const Group& group, float* out, const float* partials, int rows, int cols,
           float* workspace) const;

 private:
  std::size_t ranks() const { return partials_.size(); }
  bool is_sliced(std::int64_t floats) const;
  void sum_gathered(const Group& group, float* out, const float* partials, std::int64_t floats,
                    float* workspace) const;
  void sum_sliced(const Group& group, float* out, const float* partials, std::int64_t floats,
                  float* workspace) const;

  std::vector<std::int64_t> partials_;  // per rank
  std::int64_t total_partials_ = 0;
  std::vector<int> program_;
  TreeReduceOptions options_;
};

// Runs a program of ReductionTree on values of `length` floats: value i starts at values + i *
// length. The result goes to `out`; the values are overwritten. The stack holds at most
// `program.size()` values.
void run_tree_program(std::span<const int> program, float* out, float* values, std::int64_t length);

}  // namespace taper
