// SPDX-License-Identifier: Apache-2.0
//
// Dynamic sampling (DAPO, Yu et al. 2025): only groups that can teach something are trained.
#pragma once

#include <span>
#include <vector>

#include "rl/SampleSet.hpp"

namespace taper {

struct DynamicSamplingOptions {
  bool on = false;
  int max_rounds = 10;  // generations per iteration, at most
};

// Groups of the samples, in their order, that can teach: whose samples have different scores.
int count_teaching_groups(const std::vector<SampleSummary>& samples);

// What became of the groups of all rounds of an iteration.
struct GroupCounts {
  int rounds = 0;
  int dropped = 0;  // without a difference, left out
  int surplus = 0;  // beyond the wanted number, left out
  int filled = 0;   // without a difference, taken for want of others
};

struct GroupSelection {
  std::vector<bool> taken;  // by sample: to train
  GroupCounts counts;
};

// The first `wanted` groups that can teach; if there are fewer, the first others fill up. A pure
// function of samples in the order of their ids.
GroupSelection select_groups(const std::vector<SampleSummary>& samples, int wanted);

}  // namespace taper
