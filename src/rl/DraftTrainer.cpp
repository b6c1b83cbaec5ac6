// SPDX-License-Identifier: Apache-2.0
#include "rl/DraftTrainer.hpp"

#include <algorithm>

#include "comm/Collectives.hpp"

namespace taper {

double DraftTrainer::accumulate(const std::vector<Sample>& samples, const MicroBatchList& mine,
                                const StepTotals& totals) const {
  const PassContext& c = loop_.context();
  const double weight = 1.0 / static_cast<double>(totals.tokens);
  double loss = 0.0;
  for_each_micro_batch(samples, mine, c.options, [&](const MicroBatch& batch) {
    std::vector<char> counts;
    for (const int i : batch.samples)
      for (std::size_t t = 0; t < samples[i].response.size(); ++t)
        counts.push_back(samples[i].carries_loss(t));
    c.pass.forward(c.exec, c.view, c.parallel, batch.packed.sequences);
    c.pass.backward(
        c.exec, c.view, c.parallel, batch.packed.rows, batch.packed.targets, c.head,
        [&](std::size_t i, float log_prob, float) {
          if (!counts[i]) return TokenSlope{};
          loss -= weight * log_prob;
          return TokenSlope{static_cast<float>(-weight), 0.0f};
        },
        loop_.gradients());
  });
  return loss;
}

DraftReport DraftTrainer::update(SampleSet& samples) {
  DraftReport report;
  loop_.run(
      samples,
      [&](const MicroBatchList& mine, const StepTotals& totals) {
        std::vector<double> loss{accumulate(samples.here(), mine, totals)};
        all_reduce_ordered_sum(loop_.dp_group(), loss);
        report.loss += loss.front();
        return 1.0;
      },
      report);
  report.loss /= std::max(1, report.steps);
  return report;
}

}  // namespace taper
