// SPDX-License-Identifier: Apache-2.0
#include "tune/SftJob.hpp"

#include <cmath>
#include <numeric>

#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "rl/MicroBatch.hpp"

namespace taper {
namespace {

std::vector<int> input_lengths(const std::vector<TokenExample>& examples) {
  std::vector<int> lengths;
  lengths.reserve(examples.size());
  for (const TokenExample& e : examples) lengths.push_back(e.length() - 1);
  return lengths;
}

std::int64_t targets_of(const std::vector<TokenExample>& examples) {
  std::int64_t count = 0;
  for (const TokenExample& e : examples) count += e.targets();
  return count;
}

// The examples that this rank computes, packed into micro-batches; `each` gets their indices too.
template <class Each>
void for_each_batch(const std::vector<TokenExample>& examples, const TrainPassOptions& pass,
                    const Group& dp, const Each& each) {
  for (const auto& members :
       micro_batches_of(input_lengths(examples), dp.size(), dp.rank(), pass)) {
    PackedSamples packed;
    for (const int i : members) packed.add(examples[i].tokens, examples[i].answers);
    each(packed, members);
  }
}

}  // namespace

SftJob::SftJob(const SftOptions& options, const Ranks& ranks, const TuningContext& context)
    : TuningJob(options, ranks, context, {}, 1),
      options_(options),
      source_(options, files(), pass_options().max_rows) {
  if (options.data.files.empty()) files().require_tokenizer("examples are texts");
  require_equal(ranks, "the examples", std::to_string(source_.fingerprint()));
}

// The sum over all examples, of which this rank has some and zeros: in their order, so it does not
// matter who computed which. Collective over the replicas.
double SftJob::total(std::vector<double>& of_examples) {
  all_reduce_ordered_sum(model().dp_group(), of_examples);
  return std::accumulate(of_examples.begin(), of_examples.end(), 0.0);
}

TuningJob::StepFigures SftJob::accumulate(std::uint64_t& next) {
  const auto examples = source_.next_batch(next);
  const auto targets = static_cast<double>(targets_of(examples));
  const HeadOptions head{files().valid_ids(), 1.0f};
  const TokenSlope slope{-1.0f / static_cast<float>(targets), 0.0f};
  const auto& parallel = model().train_parallel();
  std::vector<double> losses(examples.size(), 0.0);
  for_each_batch(
      examples, pass_options(), model().dp_group(),
      [&](const PackedSamples& packed, const std::vector<int>& members) {
        std::vector<int> example_of;  // each target
        for (const int i : members) example_of.insert(example_of.end(), examples[i].targets(), i);
        model().pass().forward(ranks().exec, model().train_view(), parallel, packed.sequences);
        model().pass().backward(
            ranks().exec, model().train_view(), parallel, packed.rows, packed.targets, head,
            [&](std::size_t i, float log_prob, float) {
              losses[example_of[i]] -= log_prob;
              return slope;
            },
            model().gradients());
      });
  StepFigures step{{{"train/loss", total(losses) / targets},
                    {"train/examples", static_cast<double>(examples.size())},
                    {"train/target_tokens", targets}},
                   0};
  if (source_.examples() > 0) step.figures.emplace_back("train/epoch", source_.epochs(next));
  for (const TokenExample& e : examples) step.tokens += e.length();
  return step;
}

MetricValues SftJob::validate() {
  const auto& examples = source_.validation();
  std::vector<double> losses(examples.size(), 0.0);
  for_each_batch(examples, pass_options(), model().dp_group(),
                 [&](const PackedSamples& packed, const std::vector<int>& members) {
                   std::vector<float> log_probs(packed.rows.size());
                   model().pass().forward(ranks().exec, model().train_view(),
                                          model().train_parallel(), packed.sequences);
                   model().pass().log_probs(ranks().exec, model().train_view(),
                                            model().train_parallel(), packed.rows, packed.targets,
                                            {files().valid_ids(), 1.0f}, log_probs, {});
                   auto next = log_probs.begin();
                   for (const int i : members)
                     for (int k = 0; k < examples[i].targets(); ++k) losses[i] -= *next++;
                 });
  return {{"val/loss", total(losses) / static_cast<double>(targets_of(examples))}};
}

std::string SftJob::train_text(const ValueOf& value) const {
  return format_text("loss %.4f", value("train/loss"));
}

std::string SftJob::held_out_text(const ValueOf& value) const {
  const double loss = value("val/loss");
  return std::isnan(loss) ? "" : format_text("held-out loss %.4f", loss);
}

std::string SftJob::examples_text() const {
  if (source_.examples() == 0) return "";
  return count_text(source_.examples(), "example") + ", " +
         std::to_string(source_.validation().size()) + " held out";
}

}  // namespace taper
