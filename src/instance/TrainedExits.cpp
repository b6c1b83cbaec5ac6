// SPDX-License-Identifier: Apache-2.0
#include "instance/TrainedExits.hpp"

namespace taper {
namespace {

constexpr const char* kItem = "early exits (training)";

}  // namespace

TrainedExits::TrainedExits(const ExitFiles& files, const Ranks& ranks,
                           const TrainedExitsOptions& options)
    : files_(files), ranks_(ranks), options_(options) {
  TrainPassOptions unused;
  unused.owner = {"early exits", options.phase};
  for (const ModelFiles& head : files.heads())
    models_.emplace_back(head, ranks,
                         TrainingModelOptions{options.type, 1, 1, unused, options.adamw,
                                              "early exits", WithPass::kNo});
}

std::int64_t TrainedExits::floats() const {
  return ExitTrainer::floats(files_.heads().front().table, models_.front().train_parallel(),
                             static_cast<int>(models_.size()), options_.trainer.capacity);
}

void TrainedExits::add_memory(MemoryPlan& plan) const {
  for (const TrainingModel& model : models_) model.add_memory(plan);
  plan.add(kItem, options_.phase, floats() * std::int64_t{sizeof(float)});
}

void TrainedExits::create(Arena& arena) {
  std::vector<ExitTarget> targets;
  auto layers = files_.layers().begin();
  for (TrainingModel& model : models_) {
    model.create(arena, {});
    model.load_masters();
    targets.push_back({*layers++, model.train_view(), model.train_parallel(), model.gradients(),
                       model.optimizer(), [&model] { model.publish(); }});
  }
  trainer_ = std::make_unique<ExitTrainer>(ranks_.exec, options_.trainer, std::move(targets),
                                           files_.ids(), ranks_.world(),
                                           arena.take<float>(kItem, options_.phase, floats()));
}

std::vector<const PackedModel*> TrainedExits::packed() const {
  std::vector<const PackedModel*> packed;
  for (const TrainingModel& model : models_) packed.push_back(&model.packed());
  return packed;
}

}  // namespace taper
