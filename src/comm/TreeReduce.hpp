// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/Error.hpp"
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

  // Of one result per rank, added in the order of all_reduce_ordered_sum (Collectives.hpp).
  static TreeReducer over_ranks(int ranks);

  // Of the partial sums of all ranks, in the order of ranks (ReductionTree::finish_program).
  std::span<const int> program() const { return program_; }

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

  // The same in memory of any kind, through a medium with
  //   rank()                                      of the group
  //   all_gather_v(out, in, counts), all_to_all_v(out, out_counts, in, in_counts)
  //   copy(out, in, count)
  //   run(program, out, values, length)           run_tree_program()
  // Collective over the group, which is not null.
  template <class Medium>
  void sum_through(const Medium& medium, float* out, const float* partials, int rows, int cols,
                   float* workspace) const {
    const std::int64_t floats = std::int64_t{rows} * cols;
    if (floats == 0) return;
    if (is_sliced(floats))
      sum_sliced(medium, out, partials, floats, workspace);
    else
      sum_gathered(medium, out, partials, floats, workspace);
  }

 private:
  TreeReducer() = default;

  using Sizes = std::vector<std::int64_t>;

  std::size_t ranks() const { return partials_.size(); }
  bool is_sliced(std::int64_t floats) const;
  // The elements of a result of `floats` that rank r sums begin here.
  std::int64_t slice_begin(std::int64_t floats, std::size_t r) const;
  Sizes slice_sizes(std::int64_t floats) const;

  template <class Medium>
  void sum_gathered(const Medium& medium, float* out, const float* partials, std::int64_t floats,
                    float* workspace) const {
    Sizes counts = partials_;
    for (auto& count : counts) count *= floats;
    medium.all_gather_v(workspace, partials, counts);
    medium.run(program_, out, workspace, floats);
  }

  // Workspace: received partials of this rank's slice, the summed slice, packed partials to send.
  template <class Medium>
  void sum_sliced(const Medium& medium, float* out, const float* partials, std::int64_t floats,
                  float* workspace) const {
    const auto me = static_cast<std::size_t>(medium.rank());
    const Sizes sizes = slice_sizes(floats);
    const std::int64_t mine = partials_[me], slice = sizes[me];
    float* received = workspace;
    float* summed = received + total_partials_ * slice;

    const float* send = partials;  // one partial: its slices already lie in rank order
    if (mine > 1) {
      float* packed = summed + slice;
      send = packed;
      for (std::size_t r = 0; r < ranks(); ++r)
        for (std::int64_t p = 0; p < mine; ++p, packed += sizes[r])
          medium.copy(packed, partials + p * floats + slice_begin(floats, r), sizes[r]);
    }
    Sizes to(ranks()), from(ranks());
    for (std::size_t r = 0; r < ranks(); ++r) {
      to[r] = mine * sizes[r];
      from[r] = partials_[r] * slice;
    }
    medium.all_to_all_v(received, from, send, to);
    medium.run(program_, summed, received, slice);
    medium.all_gather_v(out, summed, sizes);
  }

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
