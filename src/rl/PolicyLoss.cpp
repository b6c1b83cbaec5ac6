// SPDX-License-Identifier: Apache-2.0
#include "rl/PolicyLoss.hpp"

#include <algorithm>
#include <cmath>

#include "base/Text.hpp"

namespace taper {
namespace {

struct Value {
  double value, slope;  // slope by the new log-prob
};

// d = new - ref log-prob; x = -d is held in [-20, 20] and the estimate in [-10, 10], as verl does.
Value kl_of(KlEstimator kind, double d) {
  switch (kind) {
    case KlEstimator::kK1:
      return {d, 1.0};
    case KlEstimator::kK2:
      return {0.5 * d * d, d};
    case KlEstimator::kK3:
      break;
  }
  const double x = std::clamp(-d, -20.0, 20.0);
  const double k = std::exp(x) - x - 1.0;
  if (k > 10.0) return {10.0, 0.0};
  return {k, std::abs(d) > 20.0 ? 0.0 : 1.0 - std::exp(x)};
}

}  // namespace

std::vector<std::string> PolicyLossOptions::problems() const {
  std::vector<std::string> list;
  const auto refuse = [&](const char* parameter, double value, const char* why) {
    list.push_back(format_text("Algorithm/%s is %g (%s)", parameter, value, why));
  };
  if (!(clip_low >= 0.0 && clip_low < 1.0)) refuse("Clip Low", clip_low, "it must be in [0, 1)");
  if (!(clip_high >= 0.0)) refuse("Clip High", clip_high, "it must not be negative");
  if (dual_clip != 0.0 && !(dual_clip > 1.0))
    refuse("Dual Clip", dual_clip, "it must exceed 1; 0 is off");
  if (!(kl_coef >= 0.0)) refuse("KL Coefficient", kl_coef, "it must not be negative");
  if (aggregation == LossAggregation::kSeqMeanTokenSumNorm && !(length_norm > 0.0))
    refuse("Length Norm", length_norm,
           "Algorithm/Loss Aggregation seq-mean-token-sum-norm divides by it; set the length in "
           "tokens that counts as one");
  return list;
}

double token_weight(const PolicyLossOptions& options, const StepTotals& totals, int length) {
  const double sequences = static_cast<double>(totals.sequences);
  switch (options.aggregation) {
    case LossAggregation::kTokenMean:
      return 1.0 / static_cast<double>(totals.tokens);
    case LossAggregation::kSeqMeanTokenSum:
      return 1.0 / sequences;
    case LossAggregation::kSeqMeanTokenMean:
      return 1.0 / (sequences * (length + 1e-8));
    case LossAggregation::kSeqMeanTokenSumNorm:
      return 1.0 / (sequences * options.length_norm);
  }
  return 0.0;
}

double add_token_loss(const PolicyLossOptions& o, const TokenInput& t, double w, LossSums& sums) {
  const double difference = static_cast<double>(t.log_prob) - t.old_log_prob;
  const bool held = std::abs(difference) > 20.0;
  const double ratio = std::exp(std::clamp(difference, -20.0, 20.0));
  const double a = t.advantage;
  const double plain = -a * ratio;
  const double clipped = -a * std::clamp(ratio, 1.0 - o.clip_low, 1.0 + o.clip_high);
  double loss = std::max(plain, clipped);
  double slope = clipped > plain || held ? 0.0 : plain;  // d(-a ratio)/d(log-prob) = -a ratio
  if (clipped > plain) sums.clipped += 1.0;
  if (o.dual_clip > 0.0 && a < 0.0 && -a * o.dual_clip < loss) {
    loss = -a * o.dual_clip;
    slope = 0.0;
    sums.dual_clipped += 1.0;
  }
  sums.policy += w * loss;
  sums.entropy += w * t.entropy;
  sums.ppo_kl -= difference;
  sums.tokens += 1.0;
  if (o.kl_coef > 0.0) {
    const Value kl = kl_of(o.kl, static_cast<double>(t.log_prob) - t.ref_log_prob);
    sums.kl += w * kl.value;
    slope += o.kl_coef * kl.slope;
  }
  return w * slope;
}

}  // namespace taper
