// SPDX-License-Identifier: Apache-2.0
#include "rl/UpdateLoop.hpp"

#include <algorithm>
#include <utility>

#include "base/Error.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "comm/Progress.hpp"
#include "optim/OptimizerStep.hpp"

namespace taper {
namespace {

std::vector<Range> mini_batches(const std::vector<SampleSummary>& samples, int parts) {
  std::vector<int> ends;  // of the samples of a prompt
  for (std::size_t at = 0; at < samples.size(); ends.push_back(static_cast<int>(at)))
    at = prompt_end(samples, at);
  return cut_mini_batches(ends, parts);
}

// Of the tokens that the model reads of the samples of some rows.
SequenceSizes sizes_of(const SampleSet& samples, Range rows, const TrainPassOptions& pass) {
  SequenceSizes sizes;
  for (int row = rows.begin; row < rows.end; ++row) {
    const SampleSummary& sample = samples.all()[row];
    sizes.add_sample(sample.length(), sample.prompt_tokens, sample.id.prompt, pass.shares_prefixes);
  }
  return sizes;
}

}  // namespace

MicroBatchList list_micro_batches(const std::vector<Sample>& samples, std::span<const int> mine,
                                  const TrainPassOptions& options) {
  std::vector<int> lengths;
  for (const int i : mine) lengths.push_back(samples[i].length() - 1);
  MicroBatchList batches = cut_micro_batches(lengths, options.max_rows, options.max_sequences);
  for (auto& batch : batches)
    for (int& i : batch) i = mine[i];
  return batches;
}

void for_each_micro_batch(const std::vector<Sample>& samples, const MicroBatchList& batches,
                          const TrainPassOptions& options,
                          const std::function<void(const MicroBatch&)>& visit) {
  for (const auto& list : batches) {
    MicroBatch batch;
    batch.samples = list;
    batch.packed.shares_prompts = options.shares_prefixes;
    for (const int i : list) batch.packed.add(samples[i].prompt, samples[i].response);
    visit(batch);
  }
}

void UpdateLoop::bring(SampleSet& samples) const {
  const RankGrid grid{model_.context.parallel.group().size(), model_.dp_group.size()};
  const std::vector<int> early = early_replicas(samples);
  std::vector<int> replica;
  for (const Range batch : mini_batches(samples.all(), options_.mini_batches)) {
    const TrainPassOptions& pass = model_.context.options;
    std::vector<int> stay;
    if (!early.empty()) stay.assign(early.begin() + batch.begin, early.begin() + batch.end);
    const auto part = deal(sizes_of(samples, batch, pass), grid.dp, pass, speeds_, stay);
    replica.insert(replica.end(), part.begin(), part.end());
  }
  samples.move_to(grid, replica);
}

std::vector<int> UpdateLoop::early_replicas(const SampleSet& samples) const {
  if (!options_.learns_early()) return {};
  std::vector<std::int32_t> replica;
  for (const SampleSummary& sample : samples.all())
    replica.push_back(early_.contains(sample.id) ? model_.dp_group.rank() : kNoReplica);
  all_reduce_max(model_.dp_group, replica);
  return replica;
}

std::vector<Range> UpdateLoop::bundles_of(const std::vector<Sample>& prompt) const {
  const TrainPassOptions& pass = model_.context.options;
  SequenceSizes sizes;
  for (const Sample& s : prompt)
    sizes.add_sample(s.length(), static_cast<int>(std::ssize(s.prompt)), s.id.prompt,
                     pass.shares_prefixes);
  return cut_bundles(sizes, pass);
}

void UpdateLoop::learn_early(const std::vector<Sample>& prompt, Range bundle,
                             const std::function<void(const MicroBatchList& mine)>& accumulate) {
  TAPER_EXPECT(options_.learns_early() && model_.context.options.bundles_of_prompts);
  if (early_.empty()) model_.gradients.clear(model_.context.exec);
  std::vector<int> members;
  for (int i = bundle.begin; i < bundle.end; ++i) {
    if (prompt[i].loss_tokens() > 0) members.push_back(i);
    early_.insert(prompt[i].id);
  }
  if (members.empty()) return;
  const MicroBatchList mine{members};
  note_work(mine, prompt, [&] { accumulate(mine); });
}

MicroBatchList UpdateLoop::micro_batches(const SampleSet& samples, Range batch,
                                         const std::set<ResponseId>& done) const {
  // Samples that carry no loss are not even passed through the model.
  std::vector<int> mine, rows;
  for (std::size_t k = 0; k < samples.here().size(); ++k) {
    const int row = samples.rows()[k];
    const SampleSummary& sample = samples.all()[row];
    if (row < batch.begin || row >= batch.end || sample.loss_tokens == 0 ||
        done.contains(sample.id))
      continue;
    mine.push_back(static_cast<int>(k));
    rows.push_back(row - batch.begin);
  }
  const TrainPassOptions& pass = model_.context.options;
  if (pass.bundle_tokens == 0) return list_micro_batches(samples.here(), mine, pass);
  MicroBatchList bundles;
  std::size_t at = 0;
  for (const Range bundle : cut_bundles(sizes_of(samples, batch, pass), pass)) {
    std::vector<int> members;
    for (; at < mine.size() && rows[at] < bundle.end; ++at) members.push_back(mine[at]);
    if (!members.empty()) bundles.push_back(std::move(members));
  }
  return bundles;
}

void UpdateLoop::run(SampleSet& samples, const Accumulate& accumulate, OptimizerSteps& report) {
  bring(samples);
  const auto batches = mini_batches(samples.all(), options_.mini_batches);
  std::set<ResponseId> done = std::exchange(early_, {});
  for (int epoch = 0; epoch < options_.epochs; ++epoch)
    for (const Range batch : batches)
      step(samples, batch, std::exchange(done, {}), accumulate, report);
  report.grad_norm /= std::max(1, report.steps - report.skipped);
}

void UpdateLoop::note_work(const MicroBatchList& mine, const std::vector<Sample>& samples,
                           const std::function<void()>& work) {
  if (model_.progress == nullptr) return work();
  const Timer timer;
  const double waited = model_.progress->seconds_in_collectives();
  work();
  work_.seconds += timer.seconds() - (model_.progress->seconds_in_collectives() - waited);
  for (const auto& batch : mine)
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Sample& s = samples[batch[i]];
      const bool shares = model_.context.options.shares_prefixes && i > 0 &&
                          samples[batch[i - 1]].id.prompt == s.id.prompt;
      work_.rows += s.length() - 1 - (shares ? std::ssize(s.prompt) - 1 : 0);
    }
}

void UpdateLoop::step(const SampleSet& samples, Range batch, const std::set<ResponseId>& done,
                      const Accumulate& accumulate, OptimizerSteps& report) {
  StepTotals totals;
  for (int row = batch.begin; row < batch.end; ++row) totals.add(samples.all()[row].loss_tokens);
  if (totals.tokens == 0) {
    ++report.empty;
    return;
  }
  if (done.empty()) model_.gradients.clear(model_.context.exec);
  const MicroBatchList mine = micro_batches(samples, batch, done);
  double rest = 1.0;
  note_work(mine, samples.here(), [&] { rest = accumulate(mine, totals); });
  const OptimizerReport made = make_step(model_.context.exec, model_.optimizer, model_.gradients,
                                         options_.schedule, model_.publish, rest);
  report.learning_rate = made.learning_rate;
  ++report.steps;
  if (made.skipped)
    ++report.skipped;
  else
    report.grad_norm += made.grad_norm;
}

}  // namespace taper
