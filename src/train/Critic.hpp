// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/Checkpoint.hpp"
#include "instance/TrainingModel.hpp"
#include "rl/CriticTrainer.hpp"
#include "session/RankBlocks.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The critic of a training job: a model of its own that says the value of each response token, and
// learns it from the returns.
class Critic {
 public:
  // Reads the configuration of its model. `policy` is the model that the critic judges, `phase`
  // that of the memory for its passes. Throws Error if there is none that fits. Collective over
  // `ranks`, of which some, or all, are its place.
  Critic(const RunOptions& options, const ModelFiles& policy, const Ranks& ranks,
         const ModelPlace& place, MemoryPhase phase);

  const ModelPlace& place() const { return place_; }
  // What this rank will hold, if anything. Not collective.
  void add_memory(MemoryPlan& plan) const {
    if (model_) model_->add_memory(plan);
  }
  // Throws Error if the weights of its model directory are not there or not of this model.
  void require_weights() const { files_.open_weights(); }
  // Throws Error if a checkpoint has no state of this critic. Not collective.
  void require_state_in(const std::filesystem::path& checkpoint) const;

  // Allocates that. Not collective.
  void create(Arena& arena);
  // Begins with the weights of the model directory, instead of those of a checkpoint. Collective
  // over its ranks.
  void load_start() {
    if (model_) model_->load_masters();
  }
  // What checkpoints have of it.
  CheckpointPart saved() { return {kCriticPart, files_, model_.get()}; }

  // Whether only the critic learns in an iteration.
  bool learns_alone(std::int64_t iteration) const { return iteration <= options_.warmup; }
  // Who gets how much to learn from (rl/UpdateLoop.hpp). Not collective.
  void set_speeds(const ReplicaSpeeds& speeds) {
    if (trainer_) trainer_->set_speeds(speeds);
  }
  // Both on its ranks, which are those of the samples.
  //
  // Sets the values of those samples that have none, after bringing all to the ranks that train the
  // critic on them. Collective over the ranks.
  void set_values(SampleSet& samples) { trainer_->set_values(samples); }
  // The same of samples that all ranks of a replica have. Collective over these.
  void set_values(std::vector<Sample>& samples) { trainer_->set_values(samples); }
  // Learns from samples with values and returns. Collective over the ranks.
  CriticReport update(SampleSet& samples) { return trainer_->update(samples); }

 private:
  CriticOptions options_;
  PolicyLossOptions loss_;  // of the policy: the critic's is aggregated alike
  ModelPlace place_;
  std::int64_t positions_;
  ModelFiles files_;
  std::unique_ptr<TrainingModel> model_;  // on its ranks
  std::unique_ptr<CriticTrainer> trainer_;
};

}  // namespace taper
