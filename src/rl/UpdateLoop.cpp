// SPDX-License-Identifier: Apache-2.0
#include "rl/UpdateLoop.hpp"

#include <algorithm>

#include "base/Log.hpp"

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

}  // namespace

void for_each_micro_batch(const std::vector<Sample>& samples, std::span<const int> mine,
                          const TrainPassOptions& options,
                          const std::function<void(const MicroBatch&)>& visit) {
  std::vector<int> lengths;
  for (const int i : mine) lengths.push_back(samples[i].length() - 1);
  for (const auto& list : cut_micro_batches(lengths, options.max_rows, options.max_sequences)) {
    MicroBatch batch;
    for (const int k : list) {
      batch.samples.push_back(mine[k]);
      batch.packed.add(samples[mine[k]].prompt, samples[mine[k]].response);
    }
    visit(batch);
  }
}

std::vector<int> UpdateLoop::share(const std::vector<Sample>& samples,
                                   std::span<const int> batch) const {
  std::vector<int> lengths, mine;
  for (const int i : batch) lengths.push_back(samples[i].length());
  for (const int i : assign_samples(lengths, model_.dp_group.size(), model_.dp_group.rank()))
    mine.push_back(batch[i]);
  return mine;
}

std::vector<int> UpdateLoop::trained_here(const std::vector<Sample>& samples) const {
  std::vector<int> mine;
  for (const auto& batch : cut_mini_batches(samples, options_.mini_batches)) {
    const auto part = share(samples, batch);
    mine.insert(mine.end(), part.begin(), part.end());
  }
  return mine;
}

void UpdateLoop::run(const std::vector<Sample>& samples, const Accumulate& accumulate,
                     OptimizerSteps& report) {
  const auto batches = cut_mini_batches(samples, options_.mini_batches);
  for (int epoch = 0; epoch < options_.epochs; ++epoch)
    for (const auto& batch : batches) step(samples, batch, accumulate, report);
  report.grad_norm /= std::max(1, report.steps - report.skipped);
}

void UpdateLoop::step(const std::vector<Sample>& samples, std::span<const int> batch,
                      const Accumulate& accumulate, OptimizerSteps& report) {
  StepTotals totals;
  for (const int i : batch) totals.add(samples[i].loss_tokens());
  if (totals.tokens == 0) {
    ++report.empty;
    return;
  }
  std::vector<int> mine = share(samples, batch);
  std::erase_if(mine, [&](int i) { return samples[i].loss_tokens() == 0; });

  const FloatVector gradient = model_.gradients.all();
  std::fill_n(gradient.data(), gradient.extent(0), 0.0f);
  accumulate(mine, totals);
  ShardedAdamW& optimizer = model_.optimizer;
  report.learning_rate = learning_rate(options_.schedule, optimizer.steps());
  const OptimizerReport done =
      optimizer.step(model_.context.exec, model_.gradients, report.learning_rate);
  model_.publish();
  ++report.steps;
  if (done.skipped) {
    ++report.skipped;
    TAPER_INFO("skipped an optimizer step: the gradient of " << done.bad_tensor
                                                             << " is not finite");
  } else {
    report.grad_norm += done.grad_norm;
  }
}

}  // namespace taper
