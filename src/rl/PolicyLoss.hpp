// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace taper {

enum class KlEstimator { kK1, kK2, kK3 };

// How token losses become one number (names of verl): sums over tokens and sequences of the whole
// optimizer step.
enum class LossAggregation {
  kTokenMean,
  kSeqMeanTokenSum,
  kSeqMeanTokenMean,
  kSeqMeanTokenSumNorm
};

struct PolicyLossOptions {
  double clip_low = 0.2, clip_high = 0.2;  // ratio kept in [1 - low, 1 + high]
  double dual_clip = 3.0;                  // for negative advantages; 0: off
  double kl_coef = 0.0;                    // KL to the reference model in the loss; 0: no reference
  KlEstimator kl = KlEstimator::kK3;
  double entropy_coef = 0.0;
  LossAggregation aggregation = LossAggregation::kTokenMean;
  double length_norm = 0.0;  // the constant length of seq-mean-token-sum-norm

  std::vector<std::string> problems() const;
};

// Counts over the whole optimizer step, all micro-batches and ranks: what sums are divided by.
struct StepTotals {
  std::int64_t tokens = 0;  // response tokens
  std::int64_t sequences = 0;
};

// The weight of each token of a sequence with `length` response tokens in the aggregated loss.
double token_weight(const PolicyLossOptions& options, const StepTotals& totals, int length);

// What one response token adds.
struct TokenInput {
  float log_prob, old_log_prob, ref_log_prob, advantage, entropy;
};

// Weighted sums over tokens; add them up over micro-batches and ranks.
struct LossSums {
  double policy = 0.0;   // aggregated policy loss
  double kl = 0.0;       // aggregated KL estimate
  double entropy = 0.0;  // aggregated entropy
  double clipped = 0.0;  // tokens at the clip
  double dual_clipped = 0.0;
  double ppo_kl = 0.0;  // sum of old - new log-prob
  double tokens = 0.0;
};

// PPO's clipped loss with dual clip, KL and entropy terms, of one token of weight w. Adds to the
// sums; returns the slope of the loss by the token's log-prob (by its entropy it is -entropy_coef *
// w).
double add_token_loss(const PolicyLossOptions& options, const TokenInput& token, double w,
                      LossSums& sums);

}  // namespace taper
