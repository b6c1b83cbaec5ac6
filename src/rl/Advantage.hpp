// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "rl/Rollout.hpp"

namespace taper {

struct AdvantageOptions {
  bool divide_by_std = true;  // false: Dr.GRPO
  double eps = 1e-6;
};

// Group-relative advantages (GRPO, Shao et al. 2024): A = (score - group mean) / (group std + eps),
// std unbiased; a group of one has mean 0 and std 1. Samples are in the order of (ordinal, sample).
void set_group_advantages(std::vector<Sample>& samples, const AdvantageOptions& options);

}  // namespace taper
