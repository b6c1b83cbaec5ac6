// SPDX-License-Identifier: Apache-2.0
#include "rl/Experience.hpp"

#include <numeric>
#include <vector>

namespace taper {
namespace {

// The share of the samples that are truncated; their tokens carry no loss from here on.
double mask_truncated(SampleSet& samples) {
  double masked = 0.0;
  for (const SampleSummary& s : samples.all())
    masked += s.finish == FinishReason::kLength ? 1.0 : 0.0;
  for (Sample& s : samples.here())
    if (s.finish == FinishReason::kLength) s.mask.assign(s.response.size(), 0);
  return samples.empty() ? 0.0 : masked / static_cast<double>(samples.size());
}

}  // namespace

ExperienceReport prepare_samples(SampleSet& samples, const ExperienceOptions& o, double kl_coef) {
  ExperienceReport report;
  if (o.mask_truncated) report.truncated_share = mask_truncated(samples);
  report.mismatch = correct_rollout(samples, o.correction);
  if (o.kl.in_reward()) {
    report.kl = mean_kl(samples, o.kl.estimator);
    report.kl_coef = kl_coef;
  }
  const std::vector<double> scores = adjusted_scores(samples, o.adjustment, report.adjustment);
  std::vector<std::vector<double>> rewards;
  for (std::size_t k = 0; k < samples.here().size(); ++k) {
    Sample& s = samples.here()[k];
    const double score = scores[samples.rows()[k]];
    rewards.push_back(token_rewards(s, score, o.kl, kl_coef));
    s.reward =
        static_cast<float>(rewards.back().empty() ? score
                                                  : std::accumulate(rewards.back().begin(),
                                                                    rewards.back().end(), 0.0));
  }
  set_advantages(samples, rewards, o.advantage);
  samples.summarize();
  return report;
}

}  // namespace taper
