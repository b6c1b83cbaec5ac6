// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rl/KlPenalty.hpp"

namespace taper {

// Loss of a token from the ratio of new and old probability; doc/algorithms.md has the formulas.
enum class PolicyLossKind {
  kPpo,    // clipped, with dual clip
  kGspo,   // the ratio of the whole sequence, clipped
  kCispo,  // the clipped ratio as a constant weight of the log-prob
};

// How token losses become one number (names of verl): sums over tokens and sequences of the whole
// optimizer step.
enum class LossAggregation {
  kTokenMean,
  kSeqMeanTokenSum,
  kSeqMeanTokenMean,
  kSeqMeanTokenSumNorm
};

struct PolicyLossOptions {
  PolicyLossKind kind = PolicyLossKind::kPpo;
  double clip_low = 0.2, clip_high = 0.2;  // ratio kept in [1 - low, 1 + high]
  double dual_clip = 3.0;                  // of PPO, for negative advantages; 0: off
  double kl_coef = 0.0;                    // KL to the reference model in the loss; 0: no reference
  KlEstimator kl = KlEstimator::kK3;
  double entropy_coef = 0.0;
  LossAggregation aggregation = LossAggregation::kTokenMean;
  double length_norm = 0.0;  // the constant length of seq-mean-token-sum-norm

  // Whether a token's loss needs all log-probs of its sequence (TokenInput::mean_log_ratio).
  bool needs_sequences() const { return kind == PolicyLossKind::kGspo; }
  std::vector<std::string> problems() const;
};

// The names that run files give them.
std::vector<std::pair<std::string, PolicyLossKind>> named_policy_losses();
std::vector<std::pair<std::string, LossAggregation>> named_aggregations();

// Counts over the whole optimizer step, all micro-batches and ranks: what sums are divided by. Of
// tokens that carry a loss, and of sequences that have such a token.
struct StepTotals {
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;

  void add(std::int64_t loss_tokens) {
    tokens += loss_tokens;
    sequences += loss_tokens > 0 ? 1 : 0;
  }
};

// The weight of each token of a sequence with `length` loss tokens in the aggregated loss.
// length_norm: the constant length of seq-mean-token-sum-norm.
double token_weight(LossAggregation how, double length_norm, const StepTotals& totals,
                    std::int64_t length);
inline double token_weight(const PolicyLossOptions& options, const StepTotals& totals,
                           std::int64_t length) {
  return token_weight(options.aggregation, options.length_norm, totals, length);
}

// Mean of log_probs - old over the loss tokens of a sequence: the logarithm of GSPO's ratio. At
// least one token carries a loss.
double mean_log_ratio(const Sample& sample, std::span<const float> log_probs);

// What one response token adds.
struct TokenInput {
  float log_prob, old_log_prob, ref_log_prob, advantage, entropy;
  float correction = 1.0f;      // weight of the policy loss
  double mean_log_ratio = 0.0;  // of its sequence, if the loss needs sequences
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

// Policy loss, KL and entropy terms of one token of weight w. Adds to the sums; returns the slope
// of the loss by the token's log-prob, constants of the formulas held fixed (by its entropy it is
// -entropy_coef * w).
double add_token_loss(const PolicyLossOptions& options, const TokenInput& token, double w,
                      LossSums& sums);

}  // namespace taper
