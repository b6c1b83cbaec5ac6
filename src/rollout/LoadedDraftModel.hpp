// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "draft/DraftModel.hpp"
#include "draft/SpeculationOptions.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/ModelFiles.hpp"
#include "rollout/GeneratorOptions.hpp"
#include "rollout/RolloutLayouts.hpp"
#include "session/Ranks.hpp"

namespace taper {

// A draft model from a directory, for the layouts of a generation. Every rank holds all of its
// weights, of which tensor-parallel shards are views: a change of layout moves nothing.
class LoadedDraftModel {
 public:
  // Throws Error if the model has other tokens than the policy, a shorter context than generation
  // needs, or is too small for a degree. Collective over the world.
  LoadedDraftModel(const GeneratorOptions& options, const ModelFiles& policy,
                   const RolloutLayouts& layouts, const Ranks& ranks);

  // Without the weights if they are trained: then they are those of the trainer.
  void add_memory(MemoryPlan& plan, WeightType type, MemoryPhase phase) const;
  // Reads the weights, or uses `trained`, the whole model, which must outlive this one.
  // Collective over the world.
  void load(WeightType type, Arena& arena, MemoryPhase phase, const PackedModel* trained);
  DraftModel& model() { return *model_; }
  // Goes on in replicas of this degree.
  void bind(int tp);

 private:
  // The degree of its layout in such replicas.
  int degree_in(int tp) const { return placement_ == DraftPlacement::kTensor ? tp : 1; }

  std::int64_t largest_cache(const RolloutLayouts& layouts) const;
  void add_layout(int degree, const EngineOptions& options, std::int64_t kv_layer);

  ModelFiles files_;
  const Ranks& ranks_;
  DraftPlacement placement_;
  std::optional<InferenceModel> weights_;   // unless they are trained
  std::map<int, ModelParallel> parallels_;  // by degree, as all below
  std::map<int, ModelView> views_;
  std::map<int, EngineSetup> layouts_;
  std::map<int, LayerWindows> windows_;  // by degree of the replicas that share out layers
  std::int64_t window_floats_ = 0;
  EngineMemory memory_;
  std::unique_ptr<DraftModel> model_;
};

}  // namespace taper
