// SPDX-License-Identifier: Apache-2.0
#include "rl/Metrics.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace taper {
namespace {

void add_statistics(MetricValues& out, const std::string& name, const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  out.emplace_back(name + "/mean", sum / static_cast<double>(values.size()));
  out.emplace_back(name + "/max", *std::max_element(values.begin(), values.end()));
  out.emplace_back(name + "/min", *std::min_element(values.begin(), values.end()));
}

struct TokenStatistics {
  double count = 0.0, sum = 0.0;
  double largest = -std::numeric_limits<double>::infinity(), smallest = -largest;
};

// Over the tokens that carry a loss: by sample, then over samples in their order. Collective over
// the ranks of the samples.
TokenStatistics statistics_over_tokens(const SampleSet& samples,
                                       const std::vector<float> Sample::*list) {
  const auto by_sample = samples.gather([&](std::size_t k) {
    const Sample& s = samples.here()[k];
    TokenStatistics mine;
    for (std::size_t t = 0; t < s.response.size(); ++t) {
      if (!s.carries_loss(t)) continue;
      const double value = (s.*list)[t];
      mine.count += 1.0;
      mine.sum += value;
      mine.largest = std::max(mine.largest, value);
      mine.smallest = std::min(mine.smallest, value);
    }
    return mine;
  });
  TokenStatistics all;
  for (const TokenStatistics& s : by_sample) {
    all.count += s.count;
    all.sum += s.sum;
    all.largest = std::max(all.largest, s.largest);
    all.smallest = std::min(all.smallest, s.smallest);
  }
  return all;
}

}  // namespace

MetricValues rollout_metrics(const std::vector<SampleSummary>& samples) {
  MetricValues out;
  std::vector<double> score, reward, response, prompt;
  double clipped = 0;
  for (const SampleSummary& s : samples) {
    if (!s.unscored) {
      score.push_back(s.score);
      reward.push_back(s.reward);
    }
    response.push_back(s.response_tokens);
    prompt.push_back(s.prompt_tokens);
    if (s.finish == FinishReason::kLength) clipped += 1.0;
  }
  add_statistics(out, "critic/score", score);
  add_statistics(out, "critic/rewards", reward);
  add_statistics(out, "response_length", response);
  out.emplace_back("response_length/clip_ratio", clipped / static_cast<double>(samples.size()));
  add_statistics(out, "prompt_length", prompt);
  return out;
}

MetricValues update_metrics(const UpdateReport& r, double kl_coef) {
  MetricValues out{{"actor/entropy", r.entropy},
                   {"actor/pg_loss", r.policy_loss},
                   {"actor/pg_clipfrac", r.clip_fraction},
                   {"actor/pg_clipfrac_lower", r.dual_clip_fraction},
                   {"actor/ppo_kl", r.ppo_kl},
                   {"actor/grad_norm", r.grad_norm},
                   {"actor/lr", r.learning_rate},
                   {"actor/skipped_steps", static_cast<double>(r.skipped + r.empty)},
                   {"training/rollout_probs_diff_max", r.prob_diff_max},
                   {"training/rollout_log_probs_diff_max", r.log_prob_diff_max}};
  if (kl_coef > 0.0) {
    out.emplace_back("actor/kl_loss", r.kl);
    out.emplace_back("actor/kl_coef", kl_coef);
  }
  return out;
}

MetricValues critic_metrics(const CriticReport& r) {
  return {{"critic/vf_loss", r.loss},
          {"critic/vf_clipfrac", r.clip_fraction},
          {"critic/vpred_mean", r.value_mean},
          {"critic/grad_norm", r.grad_norm},
          {"critic/lr", r.learning_rate},
          {"critic/skipped_steps", static_cast<double>(r.skipped + r.empty)}};
}

MetricValues draft_metrics(const DraftReport& r) {
  if (r.steps == 0) return {};
  return {{"speculation/train_loss", r.loss}, {"speculation/train_grad_norm", r.grad_norm}};
}

MetricValues value_metrics(const SampleSet& samples) {
  MetricValues out;
  const std::pair<const char*, std::vector<float> Sample::*> lists[] = {
      {"critic/values", &Sample::values},
      {"critic/returns", &Sample::returns},
      {"critic/advantages", &Sample::advantages}};
  for (const auto& [name, list] : lists) {
    const TokenStatistics tokens = statistics_over_tokens(samples, list);
    if (tokens.count == 0.0) return out;
    out.emplace_back(std::string(name) + "/mean", tokens.sum / tokens.count);
    out.emplace_back(std::string(name) + "/max", tokens.largest);
    out.emplace_back(std::string(name) + "/min", tokens.smallest);
  }
  out.emplace_back("critic/vf_explained_var", explained_variance(samples));
  return out;
}

MetricValues experience_metrics(const ExperienceReport& r, const ExperienceOptions& o) {
  MetricValues out;
  if (o.kl.in_reward())
    out.insert(out.end(),
               {{"actor/reward_kl_penalty", r.kl}, {"actor/reward_kl_penalty_coeff", r.kl_coef}});
  if (o.adjustment.is_on())
    out.insert(out.end(), {{"reward_adjustment/variance_before", r.adjustment.variance_before},
                           {"reward_adjustment/variance_after", r.adjustment.variance_after},
                           {"reward_adjustment/winners", r.adjustment.winners}});
  if (o.mask_truncated) out.emplace_back("rollout/truncated_masked", r.truncated_share);
  return out;
}

MetricValues mismatch_metrics(const MismatchReport& m, const RolloutCorrectionOptions& o) {
  MetricValues out{{"rollout_corr/kl", m.kl},
                   {"rollout_corr/k3_kl", m.k3_kl},
                   {"rollout_corr/ppl_ratio", m.ppl_ratio},
                   {"rollout_corr/chi2_token", m.chi2_token},
                   {"rollout_corr/chi2_seq", m.chi2_seq},
                   {"rollout_corr/log_ratio_abs_max", m.log_ratio_abs_max}};
  if (o.weights != ImportanceLevel::kNone)
    out.insert(out.end(), {{"rollout_corr/rollout_is_mean", m.weight_mean},
                           {"rollout_corr/rollout_is_min", m.weight_min},
                           {"rollout_corr/rollout_is_max", m.weight_max},
                           {"rollout_corr/rollout_is_eff_sample_size", m.effective_sample_size}});
  if (o.rejection != RejectionLevel::kNone)
    out.insert(out.end(), {{"rollout_corr/rollout_rs_masked_fraction", m.rejected_tokens},
                           {"rollout_corr/rollout_rs_seq_masked_fraction", m.rejected_sequences}});
  return out;
}

MetricValues group_metrics(const GroupCounts& groups) {
  return {{"train/num_gen_batches", static_cast<double>(groups.rounds)},
          {"rollout/groups_dropped", static_cast<double>(groups.dropped)},
          {"rollout/groups_surplus", static_cast<double>(groups.surplus)},
          {"rollout/groups_filled", static_cast<double>(groups.filled)}};
}

}  // namespace taper
