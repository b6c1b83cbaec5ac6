// SPDX-License-Identifier: Apache-2.0
#include "train/Policy.hpp"

#include <algorithm>

#include "base/Timer.hpp"

namespace taper {
namespace {

// The weights that ranks hold are those of the smaller degree of training and generation, where
// both are on the same ranks.
TrainingModelOptions model_options(const RunOptions& o, const Placement& placement,
                                   int generation_tp, MemoryPhase phase) {
  TrainPassOptions pass = o.pass_options();
  pass.owner.phase = phase;
  const int tp = placement.policy.grid.tp;
  const bool is_shared = placement.policy.ranks().overlaps(placement.generation.ranks());
  return {o.model.type, tp, is_shared ? generation_tp : tp, pass, o.adamw};
}

// About the totals of a step; they need not be near.
StepTotals stand_in(const RunOptions& o) {
  if (!o.training.early_learning) return {};
  const std::int64_t samples =
      std::int64_t{o.rollout.prompts} * o.rollout.samples / o.training.mini_batches;
  constexpr int kUsualShare = 4;  // of the longest response
  return {samples * std::max(1, o.rollout.max_new_tokens / kUsualShare), samples};
}

}  // namespace

Policy::Policy(const RunOptions& options, const ModelFiles& files, const RankBlocks& blocks,
               const Placement& placement, int generation_tp, MemoryPhase phase)
    : options_(options),
      files_(files),
      blocks_(blocks),
      place_(blocks.place(placement.policy)),
      pass_options_(options.pass_options()) {
  if (place_.ranks != nullptr)
    model_ = std::make_unique<TrainingModel>(
        files, *place_.ranks, model_options(options, placement, generation_tp, phase));
  const RankBlock used = placement.generation.ranks();
  if (placement.policy.ranks().contains(used)) return;
  const ModelLayout use{used.first, {generation_tp, used.count / generation_tp}};
  PublishedModelOptions beyond{options.model.type, placement.policy, use};
  beyond.phase = phase;
  beyond_ = std::make_unique<PublishedModel>(files, blocks.all(), beyond);
}

void Policy::add_memory(MemoryPlan& plan) const {
  if (model_) model_->add_memory(plan);
  if (beyond_) beyond_->add_memory(plan);
}

void Policy::create(Arena& arena, ConstFloatMatrix rope_table) {
  if (model_) model_->create(arena, rope_table);
  if (beyond_) beyond_->create(arena, model_.get());
  if (!model_) return;
  const PolicyTrainerOptions trainer{options_.loss_in_use(),
                                     {options_.schedule, options_.training.mini_batches,
                                      options_.training.epochs, stand_in(options_)}};
  trainer_ = std::make_unique<PolicyTrainer>(
      trainer, UpdateTarget{context(model_->train_view()), model_->dp_group(), model_->gradients(),
                            model_->optimizer(), [this] { timed([this] { model_->publish(); }); },
                            options_.balance.is_on() ? &place_.ranks->progress : nullptr});
}

void Policy::timed(const std::function<void()>& publish) {
  const Timer timer;
  const PhaseScope phase(blocks_.all().progress, "publish");
  publish();
  publish_seconds_ += timer.seconds();
}

void Policy::publish_beyond() {
  if (beyond_) timed([this] { beyond_->publish(); });
}

const PackedModel& Policy::packed() const {
  return model_ ? model_->packed() : beyond_->packed();
}

TrainedWork Policy::take_work() {
  TrainedWork work = trainer_->take_work();
  const LocalParams whole(files_.table, ModelShard(files_.table, 1, 0));
  const double even = static_cast<double>(whole.size()) / place_.layout.grid.tp;
  work.rows *= static_cast<double>(model_->local().size()) / even;
  return work;
}

PassContext Policy::context(const ModelView& view) {
  return {place_.ranks->exec,
          view,
          model_->train_parallel(),
          model_->pass(),
          pass_options_,
          {files_.valid_ids(), options_.rollout.sampling.temperature}};
}

}  // namespace taper
