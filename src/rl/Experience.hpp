// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rl/Advantage.hpp"
#include "rl/KlPenalty.hpp"
#include "rl/RewardVariance.hpp"
#include "rl/RolloutCorrection.hpp"

namespace taper {

// What becomes of scored samples before the policy is updated from them.
struct ExperienceOptions {
  RewardAdjustmentOptions adjustment;
  AdvantageOptions advantage;
  KlOptions kl;
  RolloutCorrectionOptions correction;
  bool mask_truncated = false;  // responses that ended at the length limit carry no loss
};

struct ExperienceReport {
  RewardAdjustmentReport adjustment;
  double kl = 0.0;               // in the reward: of the rollout's policy to the reference
  double kl_coef = 0.0;          // its coefficient
  double truncated_share = 0.0;  // samples without a loss because they were truncated
  MismatchReport mismatch;
};

// Sets mask, correction, reward and advantages of samples, which have reference log-probs if the
// KL is in the reward; kl_coef is its coefficient now. The report is the same on all ranks.
// Collective over the ranks of the samples.
ExperienceReport prepare_samples(SampleSet& samples, const ExperienceOptions& options,
                                 double kl_coef);

}  // namespace taper
