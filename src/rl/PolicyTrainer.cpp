// SPDX-License-Identifier: Apache-2.0
#include "rl/PolicyTrainer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/Log.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

// Contiguous parts of the samples that keep groups whole.
std::vector<std::vector<int>> cut_mini_batches(const std::vector<Sample>& samples, int parts) {
  std::size_t groups = 0;
  for (std::size_t at = 0; at < samples.size(); at = group_end(samples, at)) ++groups;
  std::vector<std::vector<int>> batches(
      std::max(1, std::min<int>(parts, static_cast<int>(groups))));
  for (std::size_t at = 0, group = 0; at < samples.size(); ++group)
    for (const std::size_t end = group_end(samples, at); at < end; ++at)
      batches[group * batches.size() / groups].push_back(static_cast<int>(at));
  return batches;
}

// A difference that is no number counts as infinite: neither std::max nor MPI_MAX would keep it.
void raise_to(double& largest, double difference) {
  if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
  largest = std::max(largest, difference);
}

}  // namespace

PolicyTrainer::PolicyTrainer(const PolicyTrainerOptions& options, ScoreContext context,
                             const Group& dp_group, const Gradients& gradients,
                             ShardedAdamW& optimizer, std::function<void()> publish)
    : options_(options),
      context_(context),
      dp_group_(&dp_group),
      gradients_(&gradients),
      optimizer_(&optimizer),
      publish_(std::move(publish)) {}

std::vector<int> PolicyTrainer::share(const std::vector<Sample>& samples,
                                      std::span<const int> batch) const {
  std::vector<int> lengths, mine;
  for (const int i : batch) lengths.push_back(samples[i].length());
  for (const int i : assign_samples(lengths, dp_group_->size(), dp_group_->rank()))
    mine.push_back(batch[i]);
  return mine;
}

std::vector<int> PolicyTrainer::trained_here(const std::vector<Sample>& samples) const {
  std::vector<int> mine;
  for (const auto& batch : cut_mini_batches(samples, options_.mini_batches)) {
    const auto part = share(samples, batch);
    mine.insert(mine.end(), part.begin(), part.end());
  }
  return mine;
}

UpdateReport PolicyTrainer::update(const std::vector<Sample>& samples) {
  UpdateReport report;
  const auto batches = cut_mini_batches(samples, options_.mini_batches);
  for (int epoch = 0; epoch < options_.epochs; ++epoch)
    for (const auto& batch : batches) step(samples, batch, report);
  const double steps = std::max(1, report.steps);
  for (double* mean : {&report.policy_loss, &report.kl, &report.entropy, &report.clip_fraction,
                       &report.dual_clip_fraction, &report.ppo_kl})
    *mean /= steps;
  report.grad_norm /= std::max(1, report.steps - report.skipped);
  return report;
}

void PolicyTrainer::step(const std::vector<Sample>& samples, std::span<const int> batch,
                         UpdateReport& report) {
  StepTotals totals;
  for (const int i : batch) totals.add(samples[i].loss_tokens());
  if (totals.tokens == 0) {
    ++report.empty;
    return;
  }
  std::vector<int> mine = share(samples, batch);
  std::erase_if(mine, [&](int i) { return samples[i].loss_tokens() == 0; });

  const FloatVector gradient = gradients_->all();
  std::fill_n(gradient.data(), gradient.extent(0), 0.0f);
  const LossSums sums = accumulate(samples, mine, totals, report);
  std::vector<double> global{sums.policy,       sums.kl,     sums.entropy, sums.clipped,
                             sums.dual_clipped, sums.ppo_kl, sums.tokens};
  all_reduce_ordered_sum(*dp_group_, global);
  std::vector<double> worst{report.log_prob_diff_max, report.prob_diff_max};
  all_reduce_max(*dp_group_, worst);
  report.log_prob_diff_max = worst[0];
  report.prob_diff_max = worst[1];

  report.learning_rate = learning_rate(options_.schedule, optimizer_->steps());
  const OptimizerReport optimizer =
      optimizer_->step(context_.exec, *gradients_, report.learning_rate);
  publish_();
  ++report.steps;
  if (optimizer.skipped) {
    ++report.skipped;
    TAPER_INFO("skipped an optimizer step: the gradient of " << optimizer.bad_tensor
                                                             << " is not finite");
  } else {
    report.grad_norm += optimizer.grad_norm;
  }
  report.policy_loss += global[0];
  report.kl += global[1];
  report.entropy += global[2];
  report.clip_fraction += global[3] / global[6];
  report.dual_clip_fraction += global[4] / global[6];
  report.ppo_kl += global[5] / global[6];
}

TokenSlope PolicyTrainer::add_token(const TokenRef& token, float log_prob, float entropy,
                                    LossSums& sums, UpdateReport& report) const {
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
  const double slope = add_token_loss(options_.loss, input, token.weight, sums);
  return {static_cast<float>(slope),
          static_cast<float>(-options_.loss.entropy_coef * token.weight)};
}

void PolicyTrainer::set_sequence_ratios(const PackedSamples& packed,
                                        std::vector<TokenRef>& tokens) {
  std::vector<float> log_probs(packed.rows.size());
  context_.pass.log_probs(context_.exec, context_.view, context_.parallel, packed.rows,
                          packed.targets, context_.head, log_probs, {});
  for (std::size_t at = 0; at < tokens.size();) {
    const Sample& s = *tokens[at].sample;
    const std::size_t count = s.response.size();
    const double ratio = mean_log_ratio(s, {log_probs.data() + at, count});
    for (std::size_t t = 0; t < count; ++t) tokens[at++].mean_log_ratio = ratio;
  }
}

LossSums PolicyTrainer::accumulate(const std::vector<Sample>& samples, std::span<const int> mine,
                                   const StepTotals& totals, UpdateReport& report) {
  LossSums sums;
  std::vector<int> lengths;
  for (const int i : mine) lengths.push_back(samples[i].length() - 1);
  for (const auto& batch :
       cut_micro_batches(lengths, context_.options.max_rows, context_.options.max_sequences)) {
    PackedSamples packed;
    for (const int b : batch) packed.add(samples[mine[b]].prompt, samples[mine[b]].response);
    std::vector<TokenRef> tokens;
    for (const int b : batch) {
      const Sample& s = samples[mine[b]];
      const double weight = token_weight(options_.loss, totals, s.loss_tokens());
      for (std::size_t t = 0; t < s.response.size(); ++t) tokens.push_back({&s, t, weight});
    }
    auto& pass = context_.pass;
    pass.forward(context_.exec, context_.view, context_.parallel, packed.sequences);
    if (options_.loss.needs_sequences()) set_sequence_ratios(packed, tokens);
    pass.backward(
        context_.exec, context_.view, context_.parallel, packed.rows, packed.targets, context_.head,
        [&](std::size_t i, float log_prob, float entropy) {
          return add_token(tokens[i], log_prob, entropy, sums, report);
        },
        *gradients_);
  }
  return sums;
}

}  // namespace taper
