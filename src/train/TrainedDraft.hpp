// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/Checkpoint.hpp"
#include "instance/TrainingModel.hpp"
#include "rl/DraftTrainer.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The draft model of a training job that follows the policy: after each iteration it learns from
// the responses. All ranks train it, each with the whole model. What it learns changes no token of
// the policy, only how many are drafted right.
class TrainedDraft {
 public:
  // Reads the configuration of the model. `phase` is that of the memory for its passes. Throws
  // Error if it cannot be read.
  TrainedDraft(const RunOptions& options, const ModelFiles& policy, const Ranks& ranks,
               MemoryPhase phase);

  // What this rank will hold. Not collective.
  void add_memory(MemoryPlan& plan) const { model_.add_memory(plan); }
  // Allocates, and begins with the weights of the model directory. Collective over the world.
  void create(Arena& arena);
  // What checkpoints have of it; one without it leaves the weights as they are.
  CheckpointPart saved() { return {kDraftPart, files_, &model_, false}; }
  // The weights that drafts are made with; they change in update() and when a checkpoint is loaded.
  const PackedModel& packed() const { return model_.packed(); }

  // Learns from the responses. Collective over the world.
  DraftReport update(SampleSet& samples) { return trainer_->update(samples); }

 private:
  SpeculationOptions options_;
  int valid_ids_;
  std::int64_t positions_;
  ModelFiles files_;
  TrainingModel model_;
  std::unique_ptr<DraftTrainer> trainer_;
};

}  // namespace taper
