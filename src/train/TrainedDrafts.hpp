// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "checkpoint/Checkpoint.hpp"
#include "rl/DraftTrainer.hpp"
#include "train/Policy.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// What drafts for the policy and follows it: after each iteration it learns from the responses. All
// ranks train it, each all of it. What it learns changes no token of the policy, only how many are
// drafted right.
class TrainedDrafts {
 public:
  virtual ~TrainedDrafts() = default;

  // What this rank will hold. Not collective.
  virtual void add_memory(MemoryPlan& plan) const = 0;
  // Allocates, and begins with the weights of its directory. The policy, which has been created,
  // must outlive it, and learns no more when it has ended. Collective over the world.
  virtual void create(Arena& arena, Policy& policy) = 0;
  // What checkpoints have of it; one without it leaves the weights as they are.
  virtual std::vector<CheckpointPart> saved() = 0;
  // The weights that drafts are made with; they change in learn() and when a checkpoint is loaded.
  virtual std::vector<const PackedModel*> packed() const = 0;

  // Before the policy learns. response_tokens: of all ranks.
  virtual void begin(std::int64_t response_tokens) = 0;
  // Learns from the responses, after the policy. Collective over the world.
  virtual DraftReport learn(SampleSet& samples) = 0;
};

// The draft model of the run, or its early exits; null if nothing that drafts is trained.
// `training_phase` is that of the memory in which the policy learns. Throws Error if its files
// cannot be read. Not collective.
std::unique_ptr<TrainedDrafts> make_trained_drafts(const RunOptions& options,
                                                   const ModelFiles& policy, const Ranks& ranks,
                                                   MemoryPlan& plan, MemoryPhase training_phase);

}  // namespace taper
