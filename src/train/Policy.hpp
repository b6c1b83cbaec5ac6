// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "instance/PublishedModel.hpp"
#include "instance/TrainingModel.hpp"
#include "placement/Placement.hpp"
#include "rl/PolicyTrainer.hpp"
#include "session/RankBlocks.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The policy of a training job: where it learns it has masters and moments, and where it generates
// it has weights, which may be on other ranks.
class Policy {
 public:
  // `generation_tp`: the smallest tensor-parallel degree of the generation, whose weights the ranks
  // that generate hold. `phase`: of the memory for training. Not collective.
  Policy(const RunOptions& options, const ModelFiles& files, const RankBlocks& blocks,
         const Placement& placement, int generation_tp, MemoryPhase phase);

  // What this rank will hold. Not collective.
  void add_memory(MemoryPlan& plan) const;
  // Allocates. Not collective.
  void create(Arena& arena, ConstFloatMatrix rope_table);
  // Begins with the weights of the model directory, instead of those of a checkpoint. Collective
  // over the ranks that train it; publish_beyond() must follow.
  void load_start() {
    if (model_) model_->load_masters();
  }
  // Brings the weights to ranks that generate and do not train. Collective over all ranks.
  void publish_beyond();

  const ModelPlace& place() const { return place_; }
  // Null on ranks that do not train it.
  TrainingModel* model() { return model_.get(); }
  // On ranks that generate.
  const PackedModel& packed() const;

  // As follows on the ranks that train it.
  PolicyTrainer& trainer() { return *trainer_; }
  // Of this model's pass with another one's weights in the same layout.
  PassContext context(const ModelView& view);

  // What this rank has trained since it was asked last: rows by its share of the model, against an
  // even one.
  TrainedWork take_work();

  // Seconds of publishing, on this rank since it was asked last.
  double take_publish_seconds() { return std::exchange(publish_seconds_, 0.0); }

 private:
  // Does it in a phase of its own.
  void timed(const std::function<void()>& publish);

  const RunOptions& options_;
  const ModelFiles& files_;
  const RankBlocks& blocks_;
  ModelPlace place_;
  TrainPassOptions pass_options_;
  std::unique_ptr<TrainingModel> model_;
  std::unique_ptr<PublishedModel> beyond_;  // if there are such ranks
  std::unique_ptr<PolicyTrainer> trainer_;
  double publish_seconds_ = 0.0;
};

}  // namespace taper
