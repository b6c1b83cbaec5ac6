// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/Engine.hpp"
#include "instance/ModelFiles.hpp"
#include "rollout/GeneratorOptions.hpp"
#include "session/Ranks.hpp"

namespace taper {

// The degrees of "2x4" or "4+2+2", ascending; none for an empty text. The divisor chain of a run
// must have them. Throws Error naming `option` for another text.
std::vector<int> degrees_of_layout(const std::string& option, const std::string& text);

// Floats of one layer of a block of the KV cache on the rank of a group that has the most KV heads.
std::int64_t largest_block(const ModelFiles& files, int tp, KvType type);

// The degrees that the replicas of a generation may have, and how an engine of this rank runs at
// each of them in one and the same memory.
class RolloutLayouts {
 public:
  // Throws Error if the model is too small for a degree that the options ask for, if the
  // weights do not allow the layout to start in, or if not even one sequence fits.
  RolloutLayouts(const GeneratorOptions& options, const ModelFiles& files, const Ranks& ranks);
  RolloutLayouts(const RolloutLayouts&) = delete;  // layouts refer to groups and views in here
  RolloutLayouts& operator=(const RolloutLayouts&) = delete;

  // The ranks hold the weights of this degree; the others are views of it.
  int smallest_degree() const { return layouts_.begin()->first; }
  std::vector<int> degrees() const;
  // For the engine, in whichever layout it runs.
  const EngineMemory& memory() const { return memory_; }

  // Engines can run once the weights are there, which must outlive the layouts.
  void set_weights(const PackedModel& packed);
  const EngineSetup& smallest() const { return layouts_.begin()->second; }
  const EngineSetup& at(int tp) const { return layouts_.at(tp); }
  const std::map<int, EngineSetup>& by_degree() const { return layouts_; }

 private:
  void share_memory(const ModelFiles& files);

  std::map<int, ModelParallel> parallels_;  // by degree, as all below
  std::map<int, ModelView> views_;
  std::map<int, EngineSetup> layouts_;
  EngineMemory memory_;
};

}  // namespace taper
