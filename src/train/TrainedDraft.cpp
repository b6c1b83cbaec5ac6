// SPDX-License-Identifier: Apache-2.0
#include "train/TrainedDraft.hpp"

namespace taper {
namespace {

TrainPassOptions pass_options(const RunOptions& o, MemoryPhase phase) {
  TrainPassOptions pass = o.pass_options();
  pass.owner = {"draft model", phase};
  return pass;
}

}  // namespace

TrainedDraft::TrainedDraft(const RunOptions& options, const ModelFiles& policy, const Ranks& ranks,
                           MemoryPhase phase)
    : options_(options.rollout.speculation),
      valid_ids_(policy.valid_ids()),
      positions_(options.max_positions()),
      ranks_(ranks),
      files_(options_.draft_model, "Speculation/Draft Model"),
      pass_options_(pass_options(options, phase)),
      model_(files_, ranks,
             {options.model.type, 1, 1, pass_options_, options.adamw, "draft model"}) {}

void TrainedDraft::create(Arena& arena) {
  model_.create(arena, files_.rope_table(static_cast<int>(positions_)));
  const PassContext context{ranks_.exec,   model_.train_view(), model_.train_parallel(),
                            model_.pass(), pass_options_,       {valid_ids_, 1.0f}};
  const auto publish = [this] {
    const PhaseScope phase(ranks_.progress, "publish");
    model_.publish();
  };
  const ScheduleOptions schedule{.peak = options_.train_rate};
  trainer_ = std::make_unique<DraftTrainer>(
      UpdateOptions{schedule, options_.train_steps, 1},
      UpdateTarget{context, model_.dp_group(), model_.gradients(), model_.optimizer(), publish});
  model_.load_masters();
}

}  // namespace taper
