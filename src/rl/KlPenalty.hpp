// SPDX-License-Identifier: Apache-2.0
//
// The KL to the reference model: its estimators, and the penalty in the reward.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rl/SampleSet.hpp"

namespace taper {

// Estimates of the KL from one token (Schulman, "Approximating KL divergence", 2020), with d = log
// pi - log ref: k1 = d, k2 = d^2 / 2, k3 = exp(-d) + d - 1.
enum class KlEstimator { kK1, kK2, kK3 };

struct KlValue {
  double value, slope;  // slope by the log-prob of the policy
};

// As verl computes it: k3 with -d held in [-20, 20] and its value in [-10, 10].
KlValue kl_estimate(KlEstimator kind, double log_prob, double ref_log_prob);

// Where the KL counts: as a term of the loss (current policy), or as a penalty of each token's
// reward (policy of the rollout).
enum class KlPlace { kLoss, kReward };
enum class KlControl { kFixed, kAdaptive };

struct KlOptions {
  double coef = 0.0;  // at the start, if the controller is adaptive; 0: no reference
  KlEstimator estimator = KlEstimator::kK3;
  KlPlace place = KlPlace::kLoss;
  KlControl control = KlControl::kFixed;
  double target = 0.1;       // KL that the adaptive controller aims at
  double horizon = 10000.0;  // samples over which it acts

  bool in_loss() const { return coef > 0.0 && place == KlPlace::kLoss; }
  bool in_reward() const { return coef > 0.0 && place == KlPlace::kReward; }
  std::vector<std::string> problems() const;
};

std::vector<std::pair<std::string, KlEstimator>> named_kl_estimators();

// Rewards of a sample's response tokens: the score at the last one, less coef x KL estimate of the
// rollout's policy against the reference at each. Without KL in the reward no reference is needed.
std::vector<double> token_rewards(const Sample& sample, double score, const KlOptions& options,
                                  double coef);

// The mean over the samples of the mean KL estimate of their tokens; samples without a token do not
// count. Collective over the ranks of the samples.
double mean_kl(const SampleSet& samples, KlEstimator kind);

// The coefficient after an iteration with that KL and number of samples (Ziegler et al., "Fine-
// tuning language models from human preferences", 2019). From 5 x horizon samples on it could fall
// to zero or below, and the penalty become a bonus: RunOptions::problems() refuses that.
double adapted_kl_coef(const KlOptions& options, double coef, double kl, std::int64_t samples);

}  // namespace taper
