// SPDX-License-Identifier: Apache-2.0
#include "rl/KlPenalty.hpp"

#include <algorithm>
#include <cmath>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {

KlValue kl_estimate(KlEstimator kind, double log_prob, double ref_log_prob) {
  const double d = log_prob - ref_log_prob;
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

std::vector<std::pair<std::string, KlEstimator>> named_kl_estimators() {
  return {{"k1", KlEstimator::kK1}, {"k2", KlEstimator::kK2}, {"k3", KlEstimator::kK3}};
}

std::vector<std::string> KlOptions::problems() const {
  std::vector<std::string> list;
  const auto refuse = [&](const char* parameter, double value, const char* why) {
    list.push_back(format_text("Algorithm/%s is %g (%s)", parameter, value, why));
  };
  if (!(coef >= 0.0)) refuse("KL Coefficient", coef, "it must not be negative");
  if (place == KlPlace::kReward && coef == 0.0)
    refuse("KL Coefficient", coef,
           "Algorithm/KL In is reward, but no KL is computed; set a coefficient");
  if (control == KlControl::kFixed) return list;
  if (place == KlPlace::kLoss)
    list.push_back(
        "Algorithm/KL Control is adaptive and Algorithm/KL In is loss (only the coefficient of the "
        "KL in the reward adapts); set Algorithm/KL In to reward, or the control to fixed");
  if (!(target > 0.0)) refuse("KL Target", target, "the adaptive control divides by it");
  if (!(horizon > 0.0)) refuse("KL Horizon", horizon, "the adaptive control divides by it");
  return list;
}

std::vector<double> token_rewards(const Sample& s, double score, const KlOptions& options,
                                  double coef) {
  std::vector<double> rewards(s.response.size(), 0.0);
  if (rewards.empty()) return rewards;
  if (options.in_reward()) {
    TAPER_EXPECT(s.ref_log_probs.size() == rewards.size());
    for (std::size_t t = 0; t < rewards.size(); ++t)
      rewards[t] = -coef * kl_estimate(options.estimator, s.log_probs[t], s.ref_log_probs[t]).value;
  }
  rewards.back() += score;
  return rewards;
}

double mean_kl(const SampleSet& samples, KlEstimator kind) {
  const std::vector<double> means = samples.gather([&](std::size_t k) {
    const Sample& s = samples.here()[k];
    double tokens = 0.0;
    for (std::size_t t = 0; t < s.response.size(); ++t)
      tokens += kl_estimate(kind, s.log_probs[t], s.ref_log_probs[t]).value;
    return s.response.empty() ? 0.0 : tokens / static_cast<double>(s.response.size());
  });
  double sum = 0.0, count = 0.0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    if (samples.all()[i].response_tokens == 0) continue;
    sum += means[i];
    count += 1.0;
  }
  return count > 0.0 ? sum / count : 0.0;
}

double adapted_kl_coef(const KlOptions& o, double coef, double kl, std::int64_t samples) {
  if (o.control == KlControl::kFixed) return coef;
  TAPER_EXPECT(static_cast<double>(samples) < 5.0 * o.horizon);
  const double error = std::clamp(kl / o.target - 1.0, -0.2, 0.2);
  return coef * (1.0 + error * static_cast<double>(samples) / o.horizon);
}

}  // namespace taper
