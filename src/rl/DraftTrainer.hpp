// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "rl/UpdateLoop.hpp"

namespace taper {

// Figures of one iteration's update, the same on all ranks.
struct DraftReport : OptimizerSteps {
  double loss = 0.0;  // nat per token, mean over the optimizer steps
};

// Trains a draft model to say what the policy has said: token-mean cross entropy of the responses.
// Tokens that carry no loss for the policy carry none here.
class DraftTrainer {
 public:
  DraftTrainer(const UpdateOptions& options, const UpdateTarget& model) : loop_(options, model) {}

  // Epochs x mini-batches over the samples, which it brings to the ranks that train them.
  // Collective over the training layout.
  DraftReport update(SampleSet& samples);

 private:
  // Adds the gradient of this replica's part of a step and returns its loss. Collective over the
  // tensor-parallel group.
  double accumulate(const std::vector<Sample>& samples, const MicroBatchList& mine,
                    const StepTotals& totals) const;

  UpdateLoop loop_;
};

}  // namespace taper
