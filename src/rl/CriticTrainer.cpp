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
  std::vector<Sample>& here = samples.here();
  std::vector<int> mine;
  for (std::size_t k = 0; k < here.size(); ++k)
    if (!here[k].response.empty()) mine.push_back(static_cast<int>(k));
  for_each_micro_batch(here, mine, loop_.context().options, [&](const MicroBatch& batch) {
    const std::vector<float> values = values_of(batch);
    auto next = values.begin();
    for (const int i : batch.samples) {
      const auto end = next + std::ssize(here[i].response);
      here[i].values.assign(next, end);
      next = end;
    }
  });
}

ValueSums CriticTrainer::accumulate(const std::vector<Sample>& samples, std::span<const int> mine,
                                    const StepTotals& totals) const {
  ValueSums sums;
  const PassContext& c = loop_.context();
  for_each_micro_batch(samples, mine, c.options, [&](const MicroBatch& batch) {
    const std::vector<float> values = values_of(batch);
    std::vector<float> slopes;
    for (const int i : batch.samples) {
      const Sample& s = samples[i];
      const double weight =
          token_weight(options_.aggregation, options_.length_norm, totals, s.loss_tokens());
      for (std::size_t t = 0; t < s.response.size(); ++t) {
        const ValueInput token{values[slopes.size()], s.values[t], s.returns[t]};
        const double slope =
            s.carries_loss(t) ? add_value_loss(options_.clip, token, weight, sums) : 0.0;
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
      [&](std::span<const int> mine, const StepTotals& totals) {
        ValueSums sums = accumulate(samples.here(), mine, totals);
        all_reduce_ordered_sum(loop_.dp_group(), sums);
        report.loss += sums.loss;
        report.clip_fraction += sums.clipped / sums.tokens;
        report.value_mean += sums.value / sums.tokens;
      },
      report);
  const double steps = std::max(1, report.steps);
  for (double* mean : {&report.loss, &report.clip_fraction, &report.value_mean}) *mean /= steps;
  return report;
}

}  // namespace taper
