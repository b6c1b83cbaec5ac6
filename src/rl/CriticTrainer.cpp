// SPDX-License-Identifier: Apache-2.0
#include "rl/CriticTrainer.hpp"

#include <algorithm>

#include "comm/Collectives.hpp"

namespace taper {

std::vector<float> CriticTrainer::values_of(const MicroBatch& batch) const {
  const PassContext& c = loop_.context();
  c.pass.forward(c.exec, c.view, c.parallel, batch.packed.sequences);
  std::vector<float> values(batch.packed.rows.size());
  c.pass.values(c.exec, c.view, batch.packed.rows, values);
  return values;
}

void CriticTrainer::set_values(SampleSet& samples) const {
  loop_.bring(samples);
  set_values(samples.here());
}

void CriticTrainer::set_values(std::vector<Sample>& samples) const {
  std::vector<int> mine;
  for (std::size_t k = 0; k < samples.size(); ++k)
    if (!samples[k].response.empty() && samples[k].values.empty())
      mine.push_back(static_cast<int>(k));
  const MicroBatchList batches = list_micro_batches(samples, mine, loop_.context().options);
  for_each_micro_batch(samples, batches, loop_.context().options, [&](const MicroBatch& batch) {
    const std::vector<float> values = values_of(batch);
    auto next = values.begin();
    for (const int i : batch.samples) {
      const auto end = next + std::ssize(samples[i].response);
      samples[i].values.assign(next, end);
      next = end;
    }
  });
}

std::vector<ValueSums> CriticTrainer::accumulate(const std::vector<Sample>& samples,
                                                 const MicroBatchList& mine,
                                                 const StepTotals& totals) const {
  std::vector<ValueSums> sums(samples.size());
  const PassContext& c = loop_.context();
  for_each_micro_batch(samples, mine, loop_.context().options, [&](const MicroBatch& batch) {
    const std::vector<float> values = values_of(batch);
    std::vector<float> slopes;
    for (const int i : batch.samples) {
      const Sample& s = samples[i];
      const double weight =
          token_weight(options_.aggregation, options_.length_norm, totals, s.loss_tokens());
      for (std::size_t t = 0; t < s.response.size(); ++t) {
        const ValueInput token{values[slopes.size()], s.values[t], s.returns[t]};
        const double slope =
            s.carries_loss(t) ? add_value_loss(options_.clip, token, weight, sums[i]) : 0.0;
        slopes.push_back(static_cast<float>(slope));
      }
    }
    c.pass.backward_values(c.exec, c.view, c.parallel, batch.packed.rows, slopes,
                           loop_.gradients());
  });
  return sums;
}

CriticReport CriticTrainer::update(SampleSet& samples) {
  CriticReport report;
  loop_.run(
      samples,
      [&](const MicroBatchList& mine, const StepTotals& totals) {
        const auto of_samples = accumulate(samples.here(), mine, totals);
        const auto sums = samples.sum<ValueSums>(of_samples);
        report.loss += sums.loss;
        report.clip_fraction += sums.clipped / sums.tokens;
        report.value_mean += sums.value / sums.tokens;
        return 1.0;
      },
      report);
  const double steps = std::max(1, report.steps);
  for (double* mean : {&report.loss, &report.clip_fraction, &report.value_mean}) *mean /= steps;
  return report;
}

}  // namespace taper
