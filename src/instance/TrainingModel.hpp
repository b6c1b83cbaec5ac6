// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "instance/ModelFiles.hpp"
#include "instance/Publisher.hpp"
#include "instance/WeightShare.hpp"
#include "model/TrainPass.hpp"
#include "optim/ShardedAdamW.hpp"

namespace taper {

struct UpdateTarget;

// Whether the model is run over tokens, by pass(). One that is not learns its head alone.
enum class WithPass { kNo, kYes };

struct TrainingModelOptions {
  WeightType type = WeightType::kBf16;
  int train_tp = 1;
  int generation_tp = 1;  // the smallest of the generation; may equal train_tp
  TrainPassOptions pass;
  AdamWOptions adamw;
  std::string name = "policy";  // in the memory plan
  WithPass with_pass = WithPass::kYes;
};

// A model that is trained in one layout and used for generation in another: f32 masters and moments
// sharded over all ranks, one set of packed weights of the smaller degree of both, of which the
// larger one is a view.
class TrainingModel {
 public:
  TrainingModel(const ModelFiles& files, const Ranks& ranks, const TrainingModelOptions& options);

  // What this rank will hold. Not collective.
  void add_memory(MemoryPlan& plan) const;
  // Allocates; the weights come from load_masters(), draw_masters() or a checkpoint. Not
  // collective.
  void create(Arena& arena, ConstFloatMatrix rope_table);
  // Reads the masters of the owned pieces from the files and publishes. Collective over the world.
  void load_masters();
  // Draws them instead (model/RandomWeights.hpp). Collective over the world.
  void draw_masters(std::uint64_t seed);
  // Takes them from elsewhere. Collective over the world.
  void set_masters(const PieceSource& source);

  const Exec& exec() const { return ranks_->exec; }
  const Ranks& ranks() const { return *ranks_; }
  // On its ranks.
  RankGrid layout() const { return {train_parallel_.group().size(), dp_group_->size()}; }
  const ModelParallel& train_parallel() const { return train_parallel_; }
  const ModelView& train_view() const { return *train_view_; }
  const PackedModel& packed() const { return *packed_; }
  const Group& dp_group() const { return *dp_group_; }
  const LocalParams& local() const { return train_local_; }
  TrainPass& pass() { return *pass_; }
  ShardedAdamW& optimizer() { return *optimizer_; }
  const ShardedAdamW& optimizer() const { return *optimizer_; }
  WeightType weight_type() const { return options_.type; }
  const Gradients& gradients() const { return *gradients_; }
  // Brings the masters into the packed weights of every rank. Throws Error if a piece arrived
  // damaged. Collective over the world.
  void publish() { publisher_->publish(); }
  // What trainers need of it (rl/UpdateLoop.hpp) to learn by passes with this head. It must stay
  // where it is.
  UpdateTarget target(const HeadOptions& head = {});

 private:
  bool has_pass() const { return options_.with_pass == WithPass::kYes; }
  WithBackward with_backward() const { return has_pass() ? WithBackward::kYes : WithBackward::kNo; }
  int packed_tp() const;
  // The ranks whose optimizer owns each piece.
  Ownership masters() const;

  const ModelFiles* files_;
  const Ranks* ranks_;
  TrainingModelOptions options_;
  const Group* dp_group_;
  ModelParallel train_parallel_;
  ModelShard packed_shard_;
  LocalParams train_local_, packed_local_;
  WeightShare share_;
  std::unique_ptr<PackedModel> packed_;
  std::unique_ptr<ModelView> train_view_;
  std::unique_ptr<TrainPass> pass_;
  std::unique_ptr<Gradients> gradients_;
  std::unique_ptr<ShardedAdamW> optimizer_;
  std::unique_ptr<Publisher> publisher_;
};

}  // namespace taper
