// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "instance/ModelFiles.hpp"
#include "instance/Publisher.hpp"
#include "instance/TrainingModel.hpp"
#include "instance/WeightShare.hpp"
#include "shard/ModelLayout.hpp"

namespace taper {

struct PublishedModelOptions {
  WeightType type = WeightType::kBf16;
  ModelLayout trained;  // where the model learns
  ModelLayout used;     // where it is used, in weights of this tensor-parallel degree
  std::string name = "policy (published)";   // in the memory plan
  MemoryPhase phase = MemoryPhase::kAlways;  // of the memory for publishing
};

// A model on ranks that use it, but do not train it: weights alone, as last published. Ranks that
// do both have it in the TrainingModel.
class PublishedModel {
 public:
  // `ranks` has both layouts. Not collective.
  PublishedModel(const ModelFiles& files, const Ranks& ranks, const PublishedModelOptions& options);

  // Whether this rank holds such weights.
  bool is_here() const {
    return options_.used.ranks().has(ranks_->rank()) &&
           !options_.trained.ranks().has(ranks_->rank());
  }
  // What this rank will hold. Not collective.
  void add_memory(MemoryPlan& plan) const;
  // Allocates. `trained`: the model on this rank, null if it does not learn here. Not collective.
  void create(Arena& arena, const TrainingModel* trained);

  const PackedModel& packed() const { return *packed_; }

  // Brings the masters to the ranks that use the model. Throws Error if a piece arrived damaged.
  // Collective over the ranks.
  void publish() { publisher_->publish(); }

 private:
  const ModelFiles* files_;
  const Ranks* ranks_;
  PublishedModelOptions options_;
  ModelShard shard_;
  LocalParams local_;
  WeightShare share_;
  std::unique_ptr<PackedModel> packed_;
  std::unique_ptr<Publisher> publisher_;
};

}  // namespace taper
