// SPDX-License-Identifier: Apache-2.0
#include "train/Critic.hpp"

#include "instance/SameTokenizer.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOption = "Critic/Model Directory";

// The files of the critic's model. Throws Error if it cannot judge the responses of `policy`.
// Collective over the world.
ModelFiles open_critic(const RunOptions& o, const ModelFiles& policy, const Ranks& ranks) {
  ModelFiles files(o.critic_in_use().directory, kOption, {OutputHead::kScalar, o.seed});
  require_same_tokenizer(policy, files, ranks, kOption,
                         "name a critic with the policy's tokenizer");
  files.require_context(o.max_positions(), kLengthLimits);
  return files;
}

TrainPassOptions pass_options(const RunOptions& o, MemoryPhase phase) {
  TrainPassOptions pass = o.pass_options();
  pass.owner = {"critic", phase};
  return pass;
}

TrainingModelOptions model_options(const RunOptions& o, int tp, MemoryPhase phase) {
  return {o.model.type, tp, tp, pass_options(o, phase), o.adamw, "critic"};
}

}  // namespace

Critic::Critic(const RunOptions& options, const ModelFiles& policy, const Ranks& ranks,
               const ModelPlace& place, MemoryPhase phase)
    : options_(options.critic_in_use()),
      loss_(options.loss_in_use()),
      place_(place),
      positions_(options.max_positions()),
      files_(open_critic(options, policy, ranks)) {
  if (place.ranks != nullptr)
    model_ = std::make_unique<TrainingModel>(files_, *place.ranks,
                                             model_options(options, place.layout.grid.tp, phase));
}

void Critic::require_state_in(const fs::path& checkpoint) const {
  (void)read_state_info(CheckpointStore::part_state(checkpoint, kCriticPart), files_);
}

void Critic::create(Arena& arena) {
  if (!model_) return;
  model_->create(arena, files_.rope_table(static_cast<int>(positions_)));
  trainer_ = std::make_unique<CriticTrainer>(
      CriticTrainerOptions{options_.clip,
                           loss_.aggregation,
                           loss_.length_norm,
                           {options_.schedule, options_.mini_batches, options_.epochs}},
      model_->target());
}

}  // namespace taper
