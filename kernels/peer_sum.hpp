// SPDX-License-Identifier: Apache-2.0
//
// Sums of partial results of several GPUs of a host in the order of a reduction tree, by one kernel
// on each of them: values travel as it runs, and nobody waits for a host.
#pragma once

#if defined(TAPER_CUDA)
#include <cstdint>
#include <span>

#include "kernels/Views.hpp"

namespace taper {

inline constexpr int kMostPeers = 8;
inline constexpr int kPeerParts = 3;  // of a window, used in turn

// What the kernels of one rank know of sums so far, in memory of its GPU; zeros at the start.
struct PeerTurns {
  std::uint32_t part = 0;               // of the next sum
  std::uint32_t arrived = 0;            // blocks of the kernel that runs
  std::uint32_t used[kPeerParts] = {};  // values of each part, by the sum that used it last
};

// The GPUs that add: each has a window of kPeerParts * part_floats floats that all of them write
// into, whose bytes are 0xff at the start.
struct PeerWindows {
  int rank = 0, ranks = 1;  // at most kMostPeers
  float* windows[kMostPeers] = {};
  PeerTurns* turns = nullptr;  // of this rank
  std::int64_t part_floats = 0;
};

// out (n) = residual (n; null: none) + what is left when the program of a tree
// (kernels/tree_sum.hpp) has run on the partial sums of all ranks, n values each, which come in
// rank order: counts[r] of them from rank r, at least one; `partials` are those of this one.
// Together they are at most part_floats. `out` may be the residual, but must not overlap
// `partials`. All ranks must launch the same sums in the same order, each on a stream of its own
// GPU; the kernel ends when the others' partial sums have come. Which NaN a sum of NaNs is may
// differ from other ways to add.
void peer_sum(const CudaExec& exec, VectorView<float, CudaExec> out, const float* residual,
              const float* partials, std::span<const int> counts, std::span<const int> program,
              const PeerWindows& peers);

}  // namespace taper
#endif
