// SPDX-License-Identifier: Apache-2.0
//
// The part of a fine-tuning job before its first step.
#include <algorithm>
#include <optional>

#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "profile/RunIdentity.hpp"
#include "run/LaterResults.hpp"
#include "run/RunConfig.hpp"
#include "session/Watchdog.hpp"
#include "tune/TuningJob.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnit = "step";  // what fine-tuning calls an iteration

TrainPassOptions pass_options_of(const TuningOptions& o) {
  TrainPassOptions pass;
  pass.max_rows = o.training.max_tokens;
  pass.max_sequences = 512;
  pass.checkpointing = o.training.checkpointing ? Checkpointing::kYes : Checkpointing::kNo;
  return pass;
}

ModelFiles open_model(const TuningOptions& o, const HeadChoice& head) {
  ModelFiles files(o.model.directory, "Model/Directory", head);
  TAPER_VALIDATE(!files.config.eos_ids.empty(),
                 path_text(files.directory / "config.json")
                     << " has no eos_token_id (each example ends with it); add it");
  return files;
}

}  // namespace

TuningJob::TuningJob(const TuningOptions& options, const Ranks& ranks, const TuningContext& context,
                     const HeadChoice& head)
    : options_(options),
      ranks_(ranks),
      pass_options_(pass_options_of(options)),
      files_(open_model(options, head)),
      model_(files_, ranks,
             {options.model.type, options.training.tp, options.training.tp, pass_options_,
              options.adamw, head.output == OutputHead::kScalar ? "reward model" : "policy"}),
      checkpoints_(fs::path(options.run_path()) / "checkpoints", options.checkpoint.keep),
      config_(context.config),
      stop_(context.stop, ranks.world()) {
  model_.add_memory(plan_);
}

// Throws Error where the checkpoint was made with other examples: its position means nothing here.
void TuningJob::require_same_examples(const fs::path& checkpoint, const StateInfo& state) const {
  TAPER_VALIDATE(state.data.size() == 2, "the checkpoint " << path_text(checkpoint)
                                                           << " was not made by taper " << command()
                                                           << "; use --resume none");
  TAPER_VALIDATE(static_cast<std::uint64_t>(state.data[1]) == fingerprint(),
                 "the checkpoint " << path_text(checkpoint)
                                   << " was made with other examples (Data/Files, Data/Task, or "
                                      "what decides how they are read, have changed); put them "
                                      "back, or start over with --resume none");
}

RunStart TuningJob::examine(const ResumePoint& from, CheckpointCheck check) const {
  require_memory(ranks_, plan_,
                 "lower Training/Max Tokens or set Training/Activation Checkpointing");
  RunStart start = find_run_start(from, options_.seed, files_, ranks_, check);
  if (start.is_afresh() && loads_weights()) files_.open_weights();
  from_rank_0(ranks_, [&] {
    if (start.is_afresh()) {
      if (!from.is_start())
        require_no_lost_checkpoints(options_.run_path(), {options_.checkpoint.every, 0, kUnit});
      return std::string();
    }
    require_same_examples(start.checkpoint, start.state);
    IterationLog::require_readable(options_.run_path());
    return std::string();
  });
  return start;
}

void TuningJob::report_differences(const StateInfo& state) const {
  for (const auto& change : config_changes(state.config, config_))
    TAPER_WARN("differs from the checkpoint's run file: " << change);
}

void TuningJob::report_start(const RunStart& start) const {
  if (ranks_.rank() != 0) return;
  const std::int64_t done = start.is_afresh() ? 0 : start.state.iteration;
  if (!start.is_afresh()) report_differences(start.state);
  report_later_results(options_.run_path(), done, Removal::kPlanned, kUnit);
}

std::string TuningJob::start_text() const {
  return path_text(options_.model.directory);
}

std::string TuningJob::outlook(const RunStart& start) const {
  if (start.is_afresh()) return "would start from " + start_text();
  return "would resume after step " + std::to_string(start.state.iteration) + " (checkpoint " +
         path_text(start.checkpoint) + ")";
}

// Weights and position: of a checkpoint, of the model directory, or drawn.
void TuningJob::restore(const ResumePoint& from) {
  std::optional<StateInfo> state;
  if (!from.checkpoint.empty())
    state = CheckpointStore::load(from.checkpoint, ranks_, files_, model_);
  else if (!from.store.empty())
    state =
        CheckpointStore(from.store, options_.checkpoint.keep).load_newest(ranks_, files_, model_);
  if (!state) {
    loads_weights() ? model_.load_masters() : draw_weights();
    return;
  }
  // Of the one that was loaded, which need not be the one that examine() saw.
  const fs::path& place = from.checkpoint.empty() ? from.store : from.checkpoint;
  require_same_seed(place, state->seed, options_.seed);
  require_same_examples(place, *state);
  done_ = saved_ = state->iteration;
  next_ = static_cast<std::uint64_t>(state->data[0]);
  report_differences(*state);
  TAPER_INFO("resuming after step " << done_);
}

void TuningJob::start(const ResumePoint& from) {
  ranks_.progress.set_phase("start");
  examine(from, CheckpointCheck::kHead);
  const fs::path folder = options_.run_path();
  if (ranks_.rank() == 0) {
    fs::create_directories(folder);
    checkpoints_.remove_unfinished();
    remove_hang_reports(folder.string());
    // As many as the whole run has, whatever it goes on from.
    status_ = std::make_unique<StatusFile>(folder, steps_left(0, 0));
    const bool goes_on = from.is_own && !from.is_start();
    status_->write(RunState::kPending, goes_on ? status_->last_iteration() : 0);
  }
  barrier(ranks_.world());  // the others read checkpoints only now
  Arena& arena = *(arena_ = std::make_unique<Arena>(plan_));
  model_.create(arena,
                files_.rope_table(std::min(pass_options_.max_rows, files_.config.max_positions)));
  restore(from);
  // Before any other result: a run that begins with another one's checkpoint needs that no more.
  if (!from.is_own) save_checkpoint({});
  steps_ = done_ + steps_left(next_, done_);
  history_ = load_history();
  if (const auto best = history_.best()) checkpoints_.keep_always(best->iteration);
  if (ranks_.rank() != 0) return;
  if (const std::string text = examples_text(); !text.empty())
    TAPER_INFO(text << "; " << count_text(steps_ - done_, "step") << " to go");
  report_later_results(folder, done_, Removal::kNow, kUnit);
  checkpoints_.remove_after(done_);
  if (done_ == 0) fs::remove(best_file(folder));  // of a run that this one replaces
  log_ = std::make_unique<IterationLog>(folder, config_, job_facts(ranks_), done_);
  status_ = std::make_unique<StatusFile>(folder, steps_);
  status_->write(RunState::kRunning, done_);
}

}  // namespace taper
