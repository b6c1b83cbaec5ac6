// SPDX-License-Identifier: Apache-2.0
#include "tune/RewardModelJob.hpp"

#include <cmath>

#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "rl/MicroBatch.hpp"
#include "rl/PreferenceLoss.hpp"

namespace taper {
namespace {

// Means over the pairs, under names that begin with `prefix`.
template <class Judged>
MetricValues figures_of(const std::string& prefix, const std::vector<Judged>& pairs) {
  double loss = 0, right = 0, chosen = 0, rejected = 0;
  for (const Judged& p : pairs) {
    loss += p.loss;
    right += p.chosen > p.rejected ? 1.0 : 0.0;
    chosen += p.chosen;
    rejected += p.rejected;
  }
  const auto count = static_cast<double>(pairs.size());
  return {{prefix + "/loss", loss / count},
          {prefix + "/accuracy", right / count},
          {prefix + "/margin", (chosen - rejected) / count},
          {prefix + "/reward_chosen", chosen / count},
          {prefix + "/reward_rejected", rejected / count}};
}

}  // namespace

RewardModelJob::RewardModelJob(const RewardModelOptions& options, const Ranks& ranks,
                               const TuningContext& context)
    : TuningJob(options, ranks, context, {OutputHead::kScalar, options.seed}, 2),
      options_(options),
      source_(options, files(), pass_options().max_rows) {
  require_equal(ranks, "the preference pairs", std::to_string(source_.fingerprint()));
}

std::vector<RewardModelJob::Judged> RewardModelJob::judge(const std::vector<TokenPair>& pairs,
                                                          Learn learn) {
  std::vector<int> lengths;
  for (const TokenPair& pair : pairs) lengths.push_back(pair.length());
  const auto& exec = ranks().exec;
  const auto& parallel = model().train_parallel();
  std::vector<Judged> judged(pairs.size());  // all zero if another replica has the pair
  TrainPassOptions by_pairs = pass_options();
  by_pairs.max_sequences /= 2;
  for (const auto& members :
       micro_batches_of(lengths, model().dp_group().size(), model().dp_group().rank(), by_pairs)) {
    PackedEnds packed;  // the chosen side of a pair before the rejected one
    for (const int i : members) {
      packed.add(pairs[i].chosen);
      packed.add(pairs[i].rejected);
    }
    std::vector<float> rewards(packed.rows.size()), slopes(packed.rows.size());
    model().pass().forward(exec, model().train_view(), parallel, packed.sequences);
    model().pass().values(exec, model().train_view(), packed.rows, rewards);
    for (std::size_t k = 0; k < members.size(); ++k) {
      const TokenPair& pair = pairs[members[k]];
      const float chosen = rewards[2 * k], rejected = rewards[2 * k + 1];
      const PairLoss loss = preference_loss(chosen, rejected, pair.margin, options_.center_rewards);
      const auto count = static_cast<double>(pairs.size());
      slopes[2 * k] = static_cast<float>(loss.by_chosen / count);
      slopes[2 * k + 1] = static_cast<float>(loss.by_rejected / count);
      judged[members[k]] = {loss.loss, chosen, rejected};
    }
    if (learn == Learn::kYes)
      model().pass().backward_values(exec, model().train_view(), parallel, packed.rows, slopes,
                                     model().gradients());
  }
  all_reduce_ordered_sum(model().dp_group(), judged);
  return judged;
}

TuningJob::StepFigures RewardModelJob::accumulate(std::uint64_t& next) {
  const auto pairs = source_.next_batch(next);
  StepFigures step{figures_of("train", judge(pairs, Learn::kYes)), 0};
  step.figures.emplace_back("train/pairs", static_cast<double>(pairs.size()));
  step.figures.emplace_back("train/epoch", source_.epochs(next));
  for (const TokenPair& pair : pairs) step.tokens += pair.length();
  return step;
}

MetricValues RewardModelJob::validate() {
  return figures_of("val", judge(source_.validation(), Learn::kNo));
}

std::string RewardModelJob::train_text(const ValueOf& value) const {
  return format_text("loss %.4f   right %.0f %%   margin %.3f", value("train/loss"),
                     100 * value("train/accuracy"), value("train/margin"));
}

std::string RewardModelJob::held_out_text(const ValueOf& value) const {
  const double loss = value("val/loss");
  if (std::isnan(loss)) return "";
  return format_text("held-out loss %.4f, right %.1f %%", loss, 100 * value("val/accuracy"));
}

std::string RewardModelJob::examples_text() const {
  return count_text(source_.pairs(), "pair") + ", " + std::to_string(source_.validation().size()) +
         " held out";
}

}  // namespace taper
