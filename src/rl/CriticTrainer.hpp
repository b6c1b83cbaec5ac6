// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "rl/UpdateLoop.hpp"
#include "rl/ValueLoss.hpp"

namespace taper {

struct CriticTrainerOptions {
  double clip = 0.5;  // values learn within this of those of the rollout; 0: off
  LossAggregation aggregation = LossAggregation::kTokenMean;
  double length_norm = 0.0;  // the constant length of seq-mean-token-sum-norm
  UpdateOptions update;
};

// Figures of one iteration's update, the same on all ranks; means over its optimizer steps.
struct CriticReport : OptimizerSteps {
  double loss = 0.0, clip_fraction = 0.0;
  double value_mean = 0.0;  // of the values that the updates saw
};

// Computes the values of response tokens, and trains the critic on returns. The model has a scalar
// head.
class CriticTrainer {
 public:
  CriticTrainer(const CriticTrainerOptions& options, const UpdateTarget& model)
      : options_(options), loop_(options.update, model) {}

  // Sets the values of those samples that have none, after bringing all to the ranks that train
  // them. The bits do not depend on the layout. Collective over the training layout.
  void set_values(SampleSet& samples) const;
  // The same of samples that all ranks of a replica have. Collective over these.
  void set_values(std::vector<Sample>& samples) const;

  // Who gets how much: UpdateLoop.hpp.
  void set_speeds(const ReplicaSpeeds& speeds) { loop_.set_speeds(speeds); }

  // Epochs x mini-batches over the samples, which have values and returns and which it brings to
  // the ranks that train them. Collective over the training layout.
  CriticReport update(SampleSet& samples);

 private:
  // Adds the gradient of this replica's part of a step and returns the sums of each sample.
  // Collective over the tensor-parallel group.
  std::vector<ValueSums> accumulate(const std::vector<Sample>& samples, const MicroBatchList& mine,
                                    const StepTotals& totals) const;
  // The values of a micro-batch by a forward pass, sample after sample. Collective over the
  // tensor-parallel group.
  std::vector<float> values_of(const MicroBatch& batch) const;

  CriticTrainerOptions options_;
  UpdateLoop loop_;
};

}  // namespace taper
