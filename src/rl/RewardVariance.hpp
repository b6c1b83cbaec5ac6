// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rl/SampleSet.hpp"

namespace taper {

enum class RewardAdjustment {
  kNone,
  kVariance,  // of largest variance in each group (GRPOVI, arXiv 2505.23247)
};

struct RewardAdjustmentOptions {
  RewardAdjustment how = RewardAdjustment::kNone;
  // The range of scores; both equal: from the smallest to the largest one of the iteration.
  double low = 0.0, high = 0.0;

  bool is_on() const { return how != RewardAdjustment::kNone; }
  std::vector<std::string> problems() const;
};

// The names that run files give them.
std::vector<std::pair<std::string, RewardAdjustment>> named_reward_adjustments();

// What became of the scores, as means over groups of several samples.
struct RewardAdjustmentReport {
  double variance_before = 0.0, variance_after = 0.0;  // unbiased
  double winners = 0.0;  // the share of samples at `high`, were there no equal scores
};

// The values in [low, high] with the mean of the rewards, which are in that range, in their order
// (equal ones stay equal), whose variance is largest: the largest rewards become `high`, the
// smallest ones `low`, and those between them what is left.
std::vector<double> spread_rewards(std::span<const double> rewards, double low, double high);

// The scores of all samples, by rows, after the adjustment; the same on all ranks. A group of one
// stays as it is. Throws Error for a score outside the range. Not collective.
std::vector<double> adjusted_scores(const SampleSet& samples,
                                    const RewardAdjustmentOptions& options,
                                    RewardAdjustmentReport& report);

}  // namespace taper
