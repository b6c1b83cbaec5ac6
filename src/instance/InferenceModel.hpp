// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "device/Arena.hpp"
#include "instance/ModelFiles.hpp"
#include "instance/WeightShare.hpp"
#include "model/ModelParallel.hpp"
#include "model/PackedModel.hpp"
#include "session/Ranks.hpp"

namespace taper {

// The weights of a model for inference in one uniform layout.
class InferenceModel {
 public:
  // `name` stands in the memory plan. With a phase the weights stay in staging memory, and are
  // where kernels work in that phase only, after bring().
  InferenceModel(const std::string& name, const ModelFiles& files, const Ranks& ranks, int tp,
                 std::optional<MemoryPhase> phase = std::nullopt);

  const ModelParallel& parallel() const { return parallel_; }
  void add_memory(MemoryPlan& plan, WeightType type) const;
  // Reads and packs the weights, which this rank holds from then on. Collective over the world.
  void load(WeightType type, Arena& arena);
  // The same with weights from elsewhere: of the directory only config.json is needed. Collective
  // over the world.
  void fill(WeightType type, Arena& arena, const PieceSource& source);
  // Has the weights where kernels work; they were overwritten when another phase was at work.
  void bring();
  const ModelView& view() const { return *view_; }
  const PackedModel& packed() const { return *packed_; }

 private:
  void create(WeightType type, Arena& arena);

  std::string name_;
  const ModelFiles* files_;
  const Ranks* ranks_;
  std::optional<MemoryPhase> phase_;
  ModelParallel parallel_;
  LocalParams local_;
  WeightShare share_;
  std::unique_ptr<PackedModel> packed_, staged_;  // staged_: only with a phase
  std::unique_ptr<ModelView> view_;
};

}  // namespace taper
