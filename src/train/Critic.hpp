// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/Checkpoint.hpp"
#include "instance/TrainingModel.hpp"
#include "rl/CriticTrainer.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The critic of a training job: a model of its own that says the value of each response token, and
// learns it from the returns.
class Critic {
 public:
  // Reads the configuration of its model. `policy` is the model that the critic judges, `phase`
  // that of the memory for its passes. Throws Error if there is none that fits. Collective over
  // the world.
  Critic(const RunOptions& options, const ModelFiles& policy, const Ranks& ranks,
         MemoryPhase phase);

  // What this rank will hold. Not collective.
  void add_memory(MemoryPlan& plan) const { model_.add_memory(plan); }
  // Throws Error if the weights of its model directory are not there or not of this model.
  void require_weights() const { files_.open_weights(); }
  // Throws Error if a checkpoint has no state of this critic. Not collective.
  void require_state_in(const std::filesystem::path& checkpoint) const;

  // Allocates. Not collective.
  void create(Arena& arena);
  // Begins with the weights of the model directory, instead of those of a checkpoint. Collective
  // over the world.
  void load_start() { model_.load_masters(); }
  // What checkpoints have of it.
  CheckpointPart saved() { return {kCriticPart, files_, model_}; }

  // Whether only the critic learns in an iteration.
  bool learns_alone(std::int64_t iteration) const { return iteration <= options_.warmup; }
  // Sets the values of the samples, on the ranks that train the critic on them, if it brings
  // them. Collective over the world.
  void set_values(SampleSet& samples) { trainer_->set_values(samples); }
  // Learns from samples with values and returns. Collective over the world.
  CriticReport update(SampleSet& samples) { return trainer_->update(samples); }

 private:
  CriticOptions options_;
  PolicyLossOptions loss_;  // of the policy: the critic's is aggregated alike
  const Ranks& ranks_;
  std::int64_t positions_;
  ModelFiles files_;
  TrainingModel model_;
  TrainPassOptions pass_options_;
  std::unique_ptr<CriticTrainer> trainer_;
};

}  // namespace taper
