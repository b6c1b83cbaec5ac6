// SPDX-License-Identifier: Apache-2.0
#include "rl/PolicyTrainer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "comm/Collectives.hpp"

namespace taper {
namespace {

// A difference that is no number counts as infinite: neither std::max nor MPI_MAX would keep it.
void raise_to(double& largest, double difference) {
  if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
  largest = std::max(largest, difference);
}

}  // namespace

UpdateReport PolicyTrainer::update(SampleSet& samples) {
  UpdateReport report = std::exchange(early_report_, {});
  loop_.run(
      samples,
      [&](const MicroBatchList& mine, const StepTotals& totals) {
        const StepTotals& divisors = loop_.divisors(totals);
        auto of_samples = accumulate(samples.here(), mine, divisors, report);
        for (const auto& [id, sums] : std::exchange(early_sums_, {}))
          of_samples.at(samples.place_of(id)) = sums;
        // All aggregations divide by one figure of the step.
        const double rest = token_weight(loss_, totals, 1) / token_weight(loss_, divisors, 1);
        LossSums sums = samples.sum<LossSums>(of_samples);
        for (double* sum : {&sums.policy, &sums.kl, &sums.entropy}) *sum *= rest;
        add_figures(sums, report);
        return rest;
      },
      report);
  const double steps = std::max(1, report.steps);
  for (double* mean : {&report.policy_loss, &report.kl, &report.entropy, &report.clip_fraction,
                       &report.dual_clip_fraction, &report.ppo_kl})
    *mean /= steps;
  return report;
}

void PolicyTrainer::learn_early(const std::vector<Sample>& prompt, Range bundle) {
  loop_.learn_early(prompt, bundle, [&](const MicroBatchList& mine) {
    const auto sums = accumulate(prompt, mine, loop_.divisors({}), early_report_);
    for (const int i : mine.front()) early_sums_[prompt[i].id] = sums[i];
  });
}

void PolicyTrainer::forget_early() {
  loop_.forget_early();
  early_sums_.clear();
  early_report_ = {};
}

void PolicyTrainer::add_figures(const LossSums& sums, UpdateReport& report) const {
  std::vector<double> worst{report.log_prob_diff_max, report.prob_diff_max};
  all_reduce_max(loop_.dp_group(), worst);
  report.log_prob_diff_max = worst[0];
  report.prob_diff_max = worst[1];
  report.policy_loss += sums.policy;
  report.kl += sums.kl;
  report.entropy += sums.entropy;
  report.clip_fraction += sums.clipped / sums.tokens;
  report.dual_clip_fraction += sums.dual_clipped / sums.tokens;
  report.ppo_kl += sums.ppo_kl / sums.tokens;
}

TokenSlope PolicyTrainer::add_token(const TokenRef& token, float log_prob, float entropy,
                                    UpdateReport& report) const {
  const Sample& s = *token.sample;
  const float old = s.log_probs[token.index];
  const float ref = s.ref_log_probs.empty() ? 0.0f : s.ref_log_probs[token.index];
  if (report.steps == 0) {  // later steps differ because the weights do
    const double a = log_prob, b = old;
    raise_to(report.log_prob_diff_max, std::abs(a - b));
    raise_to(report.prob_diff_max, std::abs(std::exp(a) - std::exp(b)));
  }
  if (!s.carries_loss(token.index)) return {};
  const float correction = s.correction.empty() ? 1.0f : s.correction[token.index];
  const TokenInput input{
      log_prob, old, ref, s.advantages[token.index], entropy, correction, token.mean_log_ratio};
  const double slope = add_token_loss(loss_, input, token.weight, *token.sums);
  return {static_cast<float>(slope), static_cast<float>(-loss_.entropy_coef * token.weight)};
}

void PolicyTrainer::set_sequence_ratios(const PackedSamples& packed,
                                        std::vector<TokenRef>& tokens) {
  const PassContext& c = loop_.context();
  std::vector<float> log_probs(packed.rows.size());
  c.pass.log_probs(c.exec, c.view, c.parallel, packed.rows, packed.targets, c.head, log_probs, {});
  for (std::size_t at = 0; at < tokens.size();) {
    const Sample& s = *tokens[at].sample;
    const std::size_t count = s.response.size();
    const double ratio = mean_log_ratio(s, {log_probs.data() + at, count});
    for (std::size_t t = 0; t < count; ++t) tokens[at++].mean_log_ratio = ratio;
  }
}

std::vector<LossSums> PolicyTrainer::accumulate(const std::vector<Sample>& samples,
                                                const MicroBatchList& mine,
                                                const StepTotals& totals, UpdateReport& report) {
  std::vector<LossSums> sums(samples.size());
  const PassContext& c = loop_.context();
  for_each_micro_batch(samples, mine, c.options, [&](const MicroBatch& batch) {
    std::vector<TokenRef> tokens;
    for (const int i : batch.samples) {
      const Sample& s = samples[i];
      const double weight = token_weight(loss_, totals, s.loss_tokens());
      for (std::size_t t = 0; t < s.response.size(); ++t)
        tokens.push_back({&s, &sums[i], t, weight});
    }
    c.pass.forward(c.exec, c.view, c.parallel, batch.packed.sequences);
    if (observer_) observer_(batch);
    if (loss_.needs_sequences()) set_sequence_ratios(batch.packed, tokens);
    c.pass.backward(
        c.exec, c.view, c.parallel, batch.packed.rows, batch.packed.targets, c.head,
        [&](std::size_t i, float log_prob, float entropy) {
          return add_token(tokens[i], log_prob, entropy, report);
        },
        loop_.gradients());
  });
  return sums;
}

}  // namespace taper
