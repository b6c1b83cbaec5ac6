// SPDX-License-Identifier: Apache-2.0
#include "train/TrainedDrafts.hpp"

#include <string>
#include <utility>

#include "instance/TrainedExits.hpp"
#include "instance/TrainingModel.hpp"

namespace taper {
namespace {

TrainPassOptions pass_options(const RunOptions& o, MemoryPhase phase) {
  TrainPassOptions pass = o.pass_options();
  pass.owner = {"draft model", phase};
  return pass;
}

class LearningDraftModel final : public TrainedDrafts {
 public:
  LearningDraftModel(const RunOptions& options, const ModelFiles& policy, const Ranks& ranks,
                     MemoryPhase phase)
      : options_(options.rollout.speculation),
        valid_ids_(policy.valid_ids()),
        positions_(options.max_positions()),
        files_(options_.draft_model, "Speculation/Draft Model"),
        model_(files_, ranks,
               {options.model.type, 1, 1, pass_options(options, phase), options.adamw,
                "draft model"}) {}

  void add_memory(MemoryPlan& plan) const override { model_.add_memory(plan); }

  void create(Arena& arena, Policy&) override {
    model_.create(arena, files_.rope_table(static_cast<int>(positions_)));
    const ScheduleOptions schedule{.peak = options_.train_rate};
    trainer_ = std::make_unique<DraftTrainer>(UpdateOptions{schedule, options_.train_steps, 1},
                                              model_.target({valid_ids_, 1.0f}));
    model_.load_masters();
  }

  std::vector<CheckpointPart> saved() override { return {{kDraftPart, files_, &model_, false}}; }
  std::vector<const PackedModel*> packed() const override { return {&model_.packed()}; }

  void begin(std::int64_t) override {}
  DraftReport learn(SampleSet& samples) override { return trainer_->update(samples); }

 private:
  SpeculationOptions options_;
  int valid_ids_;
  std::int64_t positions_;
  ModelFiles files_;
  TrainingModel model_;
  std::unique_ptr<DraftTrainer> trainer_;
};

// They learn while the policy does, whose memory they do not share.
TrainedExitsOptions exits_options(const RunOptions& options, MemoryPhase phase) {
  const SpeculationOptions& o = options.rollout.speculation;
  const float temperature = options.rollout.sampling.temperature;
  ExitTrainerOptions trainer{{.peak = o.train_rate}, o.train_steps};
  if (temperature > 0.0f) trainer.temperature = temperature;
  AdamWOptions adamw = options.adamw;
  adamw.weight_decay = 0.0;  // norms of heads do not learn
  return {options.model.type, adamw, trainer, phase};
}

// Exits learn from streams of the policy that its training computes anyway.
class LearningExits final : public TrainedDrafts {
 public:
  LearningExits(const RunOptions& options, const ModelFiles& policy, const Ranks& ranks,
                MemoryPhase phase)
      : ranks_(ranks),
        files_(options.rollout.speculation.early_exits, options.rollout.names.early_exits, policy),
        exits_(files_, ranks, exits_options(options, phase)) {}

  void add_memory(MemoryPlan& plan) const override { exits_.add_memory(plan); }

  void create(Arena& arena, Policy& policy) override {
    exits_.create(arena);
    policy.trainer().set_observer([this, &policy](const MicroBatch& batch) {
      TrainingModel& model = *policy.model();
      exits_.trainer().collect(model.pass(), batch.packed, model.train_parallel().group());
    });
  }

  std::vector<CheckpointPart> saved() override {
    std::vector<CheckpointPart> parts;
    auto layers = files_.layers().begin();
    auto head = files_.heads().begin();
    const std::string text = ExitFiles::list_text(files_.layers(), files_.ids());
    for (TrainingModel& model : exits_.models())
      parts.push_back({ExitFiles::head_directory(kExitsPart, *layers++), *head++, &model, false,
                       ExitFiles::list_file(kExitsPart), text});
    return parts;
  }
  std::vector<const PackedModel*> packed() const override { return exits_.packed(); }

  void begin(std::int64_t response_tokens) override {
    exits_.trainer().begin(response_tokens / ranks_.size());
  }
  DraftReport learn(SampleSet&) override { return exits_.trainer().learn(); }

 private:
  const Ranks& ranks_;
  ExitFiles files_;
  TrainedExits exits_;
};

}  // namespace

std::unique_ptr<TrainedDrafts> make_trained_drafts(const RunOptions& options,
                                                   const ModelFiles& policy, const Ranks& ranks,
                                                   MemoryPlan& plan, MemoryPhase training_phase) {
  const SpeculationOptions& o = options.rollout.speculation;
  if (!o.trains_draft()) return nullptr;
  if (o.has_draft_model())
    return std::make_unique<LearningDraftModel>(options, policy, ranks, plan.phase("draft"));
  return std::make_unique<LearningExits>(options, policy, ranks, training_phase);
}

}  // namespace taper
