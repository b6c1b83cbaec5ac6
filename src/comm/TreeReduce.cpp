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

// The part of `floats` elements that rank r sums.
std::int64_t slice_begin(std::int64_t floats, std::size_t ranks, std::size_t r) {
  return floats * static_cast<std::int64_t>(r) / static_cast<std::int64_t>(ranks);
}

std::vector<std::int64_t> slice_sizes(std::int64_t floats, std::size_t ranks) {
  std::vector<std::int64_t> sizes(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    sizes[r] = slice_begin(floats, ranks, r + 1) - slice_begin(floats, ranks, r);
  }
  return sizes;
}

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

bool TreeReducer::is_sliced(std::int64_t floats) const {
  return floats * static_cast<std::int64_t>(sizeof(float)) >= options_.slice_bytes;
}

std::size_t TreeReducer::workspace_floats(int rows, int cols) const {
  if (ranks() == 1) return 0;
  const std::int64_t floats = std::int64_t{rows} * cols;
  if (!is_sliced(floats)) return static_cast<std::size_t>(total_partials_ * floats);
  const auto sizes = slice_sizes(floats, ranks());
  const std::int64_t slice = *std::max_element(sizes.begin(), sizes.end());
  const std::int64_t most = *std::max_element(partials_.begin(), partials_.end());
  const std::int64_t packed = most > 1 ? most * floats : 0;
  return static_cast<std::size_t>(packed + (total_partials_ + 1) * slice);
}

void TreeReducer::sum(const Group& group, float* out, const float* partials, int rows, int cols,
                      float* workspace) const {
  TAPER_EXPECT(static_cast<std::size_t>(group.size()) == ranks());
  const std::int64_t floats = std::int64_t{rows} * cols;
  if (floats == 0) return;
  if (group.is_null()) {  // one shard of all leaves is one node: its only partial is the sum
    if (out != partials) std::copy_n(partials, floats, out);
  } else if (is_sliced(floats)) {
    sum_sliced(group, out, partials, floats, workspace);
  } else {
    sum_gathered(group, out, partials, floats, workspace);
  }
}

void TreeReducer::sum_gathered(const Group& group, float* out, const float* partials,
                               std::int64_t floats, float* workspace) const {
  std::vector<std::int64_t> counts = partials_;
  for (auto& count : counts) count *= floats;
  all_gather_v(group, std::span(workspace, static_cast<std::size_t>(total_partials_ * floats)),
               std::span(partials, static_cast<std::size_t>(counts[group.rank()])), counts);
  run_tree_program(program_, out, workspace, floats);
}

// Workspace: received partials of this rank's slice, the summed slice, packed partials to send.
void TreeReducer::sum_sliced(const Group& group, float* out, const float* partials,
                             std::int64_t floats, float* workspace) const {
  const auto me = static_cast<std::size_t>(group.rank());
  const auto sizes = slice_sizes(floats, ranks());
  const std::int64_t mine = partials_[me], slice = sizes[me];
  float* received = workspace;
  float* summed = received + total_partials_ * slice;

  const float* send = partials;  // one partial: its slices already lie in rank order
  if (mine > 1) {
    float* packed = summed + slice;
    send = packed;
    for (std::size_t r = 0; r < ranks(); ++r) {
      for (std::int64_t p = 0; p < mine; ++p, packed += sizes[r]) {
        std::copy_n(partials + p * floats + slice_begin(floats, ranks(), r), sizes[r], packed);
      }
    }
  }
  std::vector<std::int64_t> to(ranks()), from(ranks());
  for (std::size_t r = 0; r < ranks(); ++r) {
    to[r] = mine * sizes[r];
    from[r] = partials_[r] * slice;
  }
  all_to_all_v(group, std::span(received, static_cast<std::size_t>(total_partials_ * slice)), from,
               std::span(send, static_cast<std::size_t>(mine * floats)), to);
  run_tree_program(program_, summed, received, slice);
  all_gather_v(group, std::span(out, static_cast<std::size_t>(floats)),
               std::span<const float>(summed, static_cast<std::size_t>(slice)), sizes);
}

}  // namespace taper
