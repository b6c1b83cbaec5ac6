// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <span>
#include <vector>

#include "engine/Engine.hpp"
#include "instance/ExitFiles.hpp"
#include "instance/InferenceModel.hpp"
#include "rollout/GeneratorOptions.hpp"
#include "rollout/RolloutLayouts.hpp"
#include "session/Ranks.hpp"

namespace taper {

// Early exits of the policy from a directory. Every rank holds all heads, so they stay as they are
// when the layout changes.
class LoadedExits {
 public:
  // Throws Error if they are not for this model. Not collective.
  LoadedExits(const GeneratorOptions& options, const ModelFiles& policy,
              const RolloutLayouts& layouts, const Ranks& ranks);

  // Without the heads if they are trained: then they are those of the trainer.
  void add_memory(MemoryPlan& plan, WeightType type, MemoryPhase phase) const;
  // Reads the heads, or uses `trained`, one for each exit, which must outlive this; the engine can
  // be asked for guesses from then on. Collective over the world.
  GuessModel& load(WeightType type, Arena& arena, MemoryPhase phase,
                   std::span<const PackedModel* const> trained, Engine& engine);

 private:
  std::int64_t floats() const;

  ExitFiles files_;
  const Ranks& ranks_;
  bool is_trained_;
  int step_rows_, logit_rows_;
  std::list<InferenceModel> weights_;  // unless they are trained
  std::list<ModelParallel> parallels_;
  std::list<ModelView> views_;
};

}  // namespace taper
