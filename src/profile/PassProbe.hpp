// SPDX-License-Identifier: Apache-2.0
//
// Measures what `taper plan` prices training by.
#pragma once

#include <vector>

#include "instance/ModelFiles.hpp"
#include "kernels/product.hpp"
#include "planner/LatencyProfile.hpp"
#include "session/Ranks.hpp"

namespace taper {

struct PassProbeOptions {
  WeightType type = WeightType::kBf16;
  int max_rows = 1024;    // tokens of the largest micro-batch
  int long_length = 512;  // of the longer of two lengths of sequences, at most; tokens
};

// Times what training does beside generation, at each tensor-parallel degree: forward passes, and
// forward and backward passes, of some micro-batches with and without log-probs; and optimizer
// steps on blocks of all sizes of the divisor chain. All blocks of a size work at the same time,
// and the slowest rank counts. The weights are drawn, not read: no time depends on them. The same
// on all ranks. What does not fit in memory is left out, with a line in the log. Collective over
// the world.
std::vector<PassSample> measure_passes(const PassProbeOptions& options, ModelFiles& files,
                                       const Ranks& ranks, const std::vector<int>& degrees);

}  // namespace taper
