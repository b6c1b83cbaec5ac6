// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "instance/ExitFiles.hpp"
#include "instance/TrainingModel.hpp"
#include "rl/ExitTrainer.hpp"

namespace taper {

struct TrainedExitsOptions {
  WeightType type = WeightType::kBf16;
  AdamWOptions adamw;
  ExitTrainerOptions trainer;
  MemoryPhase phase;  // of the memory for learning
};

// Early exits that learn from streams of the policy. All ranks train them, each with all heads.
class TrainedExits {
 public:
  // The files must outlive it.
  TrainedExits(const ExitFiles& files, const Ranks& ranks, const TrainedExitsOptions& options);

  // What this rank will hold. Not collective.
  void add_memory(MemoryPlan& plan) const;
  // Allocates, and begins with the heads of the files. Collective over the world.
  void create(Arena& arena);

  ExitTrainer& trainer() { return *trainer_; }
  // One for each exit, ascending.
  std::list<TrainingModel>& models() { return models_; }
  // The weights that guesses are made with; they change as the trainer learns.
  std::vector<const PackedModel*> packed() const;

 private:
  std::int64_t floats() const;

  const ExitFiles& files_;
  const Ranks& ranks_;
  TrainedExitsOptions options_;
  std::list<TrainingModel> models_;
  std::unique_ptr<ExitTrainer> trainer_;
};

}  // namespace taper
