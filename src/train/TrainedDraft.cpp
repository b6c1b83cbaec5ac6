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
      files_(options_.draft_model, "Speculation/Draft Model"),
      model_(
          files_, ranks,
          {options.model.type, 1, 1, pass_options(options, phase), options.adamw, "draft model"}) {}

void TrainedDraft::create(Arena& arena) {
  model_.create(arena, files_.rope_table(static_cast<int>(positions_)));
  const ScheduleOptions schedule{.peak = options_.train_rate};
  trainer_ = std::make_unique<DraftTrainer>(UpdateOptions{schedule, options_.train_steps, 1},
                                            model_.target({valid_ids_, 1.0f}));
  model_.load_masters();
}

}  // namespace taper
