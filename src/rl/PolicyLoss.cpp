// SPDX-License-Identifier: Apache-2.0
#include "rl/PolicyLoss.hpp"

#include <algorithm>
#include <cmath>

#include "base/Text.hpp"

namespace taper {
namespace {

struct Value {
  double loss, slope;  // slope by the new log-prob
};

double clip(const PolicyLossOptions& o, double ratio) {
  return std::clamp(ratio, 1.0 - o.clip_low, 1.0 + o.clip_high);
}

// The larger of plain and clipped loss; `held`: the ratio is at a bound and no longer follows the
// log-prob.
Value clipped_loss(const PolicyLossOptions& o, double a, double ratio, bool held, LossSums& sums) {
  const double plain = -a * ratio, clipped = -a * clip(o, ratio);
  if (clipped > plain) {
    sums.clipped += 1.0;
    return {clipped, 0.0};
  }
  return {std::max(plain, clipped), held ? 0.0 : plain};  // d(-a ratio)/d(log-prob) = -a ratio
}

Value policy_loss(const PolicyLossOptions& o, const TokenInput& t, double difference,
                  LossSums& sums) {
  const double a = t.advantage;
  if (o.kind == PolicyLossKind::kGspo)
    return clipped_loss(o, a, std::exp(std::min(t.mean_log_ratio, 10.0)), t.mean_log_ratio > 10.0,
                        sums);
  const double ratio = std::exp(std::clamp(difference, -20.0, 20.0));
  if (o.kind == PolicyLossKind::kCispo) {
    const double weight = clip(o, ratio);
    if (weight != ratio) sums.clipped += 1.0;
    return {-weight * a * t.log_prob, -weight * a};
  }
  Value v = clipped_loss(o, a, ratio, std::abs(difference) > 20.0, sums);
  if (o.dual_clip > 0.0 && a < 0.0 && -a * o.dual_clip < v.loss) {
    sums.dual_clipped += 1.0;
    v = {-a * o.dual_clip, 0.0};
  }
  return v;
}

}  // namespace

std::vector<std::string> PolicyLossOptions::problems() const {
  std::vector<std::string> list;
  const auto refuse = [&](const char* parameter, double value, const char* why) {
    list.push_back(format_text("Algorithm/%s is %g (%s)", parameter, value, why));
  };
  if (!(clip_low >= 0.0)) refuse("Clip Low", clip_low, "it must not be negative");
  if (!(clip_high >= 0.0)) refuse("Clip High", clip_high, "it must not be negative");
  if (dual_clip != 0.0 && !(dual_clip > 1.0))
    refuse("Dual Clip", dual_clip, "it must exceed 1; 0 is off");
  if (kind == PolicyLossKind::kGspo && aggregation != LossAggregation::kSeqMeanTokenMean)
    list.push_back(
        "Algorithm/Loss Aggregation does not fit Algorithm/Policy Loss gspo (which uses one ratio "
        "per sequence, all with the same weight); set it to seq-mean-token-mean");
  return list;
}

std::vector<std::pair<std::string, PolicyLossKind>> named_policy_losses() {
  return {{"ppo", PolicyLossKind::kPpo},
          {"gspo", PolicyLossKind::kGspo},
          {"cispo", PolicyLossKind::kCispo}};
}

std::vector<std::pair<std::string, LossAggregation>> named_aggregations() {
  return {{"token-mean", LossAggregation::kTokenMean},
          {"seq-mean-token-sum", LossAggregation::kSeqMeanTokenSum},
          {"seq-mean-token-mean", LossAggregation::kSeqMeanTokenMean},
          {"seq-mean-token-sum-norm", LossAggregation::kSeqMeanTokenSumNorm}};
}

double token_weight(LossAggregation how, double length_norm, const StepTotals& totals,
                    std::int64_t length) {
  const double sequences = static_cast<double>(totals.sequences);
  switch (how) {
    case LossAggregation::kTokenMean:
      return 1.0 / static_cast<double>(totals.tokens);
    case LossAggregation::kSeqMeanTokenSum:
      return 1.0 / sequences;
    case LossAggregation::kSeqMeanTokenMean:
      return 1.0 / (sequences * (static_cast<double>(length) + 1e-8));
    case LossAggregation::kSeqMeanTokenSumNorm:
      return 1.0 / (sequences * length_norm);
  }
  return 0.0;
}

double mean_log_ratio(const Sample& s, std::span<const float> log_probs) {
  double sum = 0.0, count = 0.0;
  for (std::size_t t = 0; t < log_probs.size(); ++t) {
    if (!s.carries_loss(t)) continue;
    sum += static_cast<double>(log_probs[t]) - s.log_probs[t];
    count += 1.0;
  }
  return sum / count;
}

double add_token_loss(const PolicyLossOptions& o, const TokenInput& t, double w, LossSums& sums) {
  const double difference = static_cast<double>(t.log_prob) - t.old_log_prob;
  const Value policy = policy_loss(o, t, difference, sums);
  sums.policy += w * t.correction * policy.loss;
  sums.entropy += w * t.entropy;
  sums.ppo_kl -= std::clamp(difference, -20.0, 20.0);
  sums.tokens += 1.0;
  double slope = t.correction * policy.slope;
  if (o.kl_coef > 0.0) {
    const KlValue kl = kl_estimate(o.kl, t.log_prob, t.ref_log_prob);
    sums.kl += w * kl.value;
    slope += o.kl_coef * kl.slope;
  }
  return w * slope;
}

}  // namespace taper
