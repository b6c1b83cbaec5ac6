// SPDX-License-Identifier: Apache-2.0
#include "comm/TreeReduce.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

// A block of each value is carried through the whole program while it is in the cache.
constexpr std::int64_t kBlockFloats = 2048;

void add(float* out, const float* lower, const float* upper, std::int64_t length) {
  for (std::int64_t i = 0; i < length; ++i) out[i] = lower[i] + upper[i];
}

// The program of a pairwise sum of [begin, end) by bisection.
void add_bisection(std::vector<int>& program, int begin, int end) {
  if (end - begin < 2) return;
  const int middle = begin + (end - begin) / 2;
  add_bisection(program, begin, middle);
  add_bisection(program, middle, end);
  ++program[static_cast<std::size_t>(end - 1)];
}

// Host memory and MPI.
class HostMedium {
 public:
  explicit HostMedium(const Group& group) : group_(group) {}

  int rank() const { return group_.rank(); }
  void all_gather_v(float* out, const float* in, std::span<const std::int64_t> counts) const {
    taper::all_gather_v(group_, std::span(out, sum(counts)),
                        std::span(in, static_cast<std::size_t>(counts[rank()])), counts);
  }
  void all_to_all_v(float* out, std::span<const std::int64_t> out_counts, const float* in,
                    std::span<const std::int64_t> in_counts) const {
    taper::all_to_all_v(group_, std::span(out, sum(out_counts)), out_counts,
                        std::span(in, sum(in_counts)), in_counts);
  }
  void copy(float* out, const float* in, std::int64_t count) const { std::copy_n(in, count, out); }
  void run(std::span<const int> program, float* out, float* values, std::int64_t length) const {
    run_tree_program(program, out, values, length);
  }

 private:
  static std::size_t sum(std::span<const std::int64_t> counts) {
    return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  }

  const Group& group_;
};

}  // namespace

std::vector<std::string> TreeReduceOptions::problems() const {
  if (slice_bytes < 0) return {"slice_bytes must not be negative (0 sums every result in slices)"};
  return {};
}

void run_tree_program(std::span<const int> program, float* out, float* values,
                      std::int64_t length) {
  std::vector<float*> stack;
  stack.reserve(program.size());
  const int additions = std::accumulate(program.begin(), program.end(), 0);
  for (std::int64_t at = 0; at < length; at += kBlockFloats) {
    const std::int64_t block = std::min(kBlockFloats, length - at);
    int left = additions;
    stack.clear();
    for (std::size_t i = 0; i < program.size(); ++i) {
      stack.push_back(values + static_cast<std::int64_t>(i) * length + at);
      for (int n = 0; n < program[i]; ++n) {
        const float* upper = stack.back();
        stack.pop_back();
        // In place of the lower value, except for the last addition.
        float* target = --left == 0 ? out + at : stack.back();
        add(target, stack.back(), upper, block);
        stack.back() = target;
      }
    }
    TAPER_ENSURE(stack.size() == 1);
    if (additions == 0) std::copy_n(stack.back(), block, out + at);
  }
}

TreeReducer::TreeReducer(const ReductionTree& tree, std::vector<Range> shards,
                         TreeReduceOptions options)
    : options_(options) {
  for (const auto& problem : options_.problems()) TAPER_INSIST(false, "tree reduce: " << problem);
  int covered = 0;
  for (const Range& shard : shards) {
    TAPER_INSIST(shard.begin == covered && shard.end >= shard.begin,
                 "shard of leaves [" << shard.begin << ", " << shard.end << ") after leaf "
                                     << covered
                                     << " (the shards of a group must be ascending without gaps)");
    covered = shard.end;
    partials_.push_back(tree.partials(shard));
  }
  TAPER_INSIST(covered == tree.leaves(),
               "shards cover " << covered << " of " << tree.leaves() << " leaves");
  program_ = tree.finish_program(shards);
  total_partials_ = std::accumulate(partials_.begin(), partials_.end(), std::int64_t{0});
  TAPER_ENSURE(total_partials_ == static_cast<std::int64_t>(program_.size()));
}

TreeReducer TreeReducer::over_ranks(int ranks) {
  TreeReducer reducer;
  reducer.partials_.assign(static_cast<std::size_t>(ranks), 1);
  reducer.total_partials_ = ranks;
  reducer.program_.assign(static_cast<std::size_t>(ranks), 0);
  add_bisection(reducer.program_, 0, ranks);
  return reducer;
}

bool TreeReducer::is_sliced(std::int64_t floats) const {
  return floats * static_cast<std::int64_t>(sizeof(float)) >= options_.slice_bytes;
}

std::size_t TreeReducer::workspace_floats(int rows, int cols) const {
  if (ranks() == 1) return 0;
  const std::int64_t floats = std::int64_t{rows} * cols;
  if (!is_sliced(floats)) return static_cast<std::size_t>(total_partials_ * floats);
  const Sizes sizes = slice_sizes(floats);
  const std::int64_t slice = *std::max_element(sizes.begin(), sizes.end());
  const std::int64_t most = *std::max_element(partials_.begin(), partials_.end());
  const std::int64_t packed = most > 1 ? most * floats : 0;
  return static_cast<std::size_t>(packed + (total_partials_ + 1) * slice);
}

std::int64_t TreeReducer::slice_begin(std::int64_t floats, std::size_t r) const {
  return floats * static_cast<std::int64_t>(r) / static_cast<std::int64_t>(ranks());
}

TreeReducer::Sizes TreeReducer::slice_sizes(std::int64_t floats) const {
  Sizes sizes(ranks());
  for (std::size_t r = 0; r < ranks(); ++r)
    sizes[r] = slice_begin(floats, r + 1) - slice_begin(floats, r);
  return sizes;
}

void TreeReducer::sum(const Group& group, float* out, const float* partials, int rows, int cols,
                      float* workspace) const {
  TAPER_EXPECT(static_cast<std::size_t>(group.size()) == ranks());
  if (!group.is_null()) {
    sum_through(HostMedium(group), out, partials, rows, cols, workspace);
  } else if (out != partials) {  // one shard of all leaves is one node: its only partial is the sum
    std::copy_n(partials, std::int64_t{rows} * cols, out);
  }
}

}  // namespace taper
