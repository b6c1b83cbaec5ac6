// SPDX-License-Identifier: Apache-2.0
#include "run/Job.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/TextFile.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "run/LaterResults.hpp"
#include "run/RunConfig.hpp"
#include "session/MemoryCheck.hpp"
#include "session/Watchdog.hpp"

namespace taper {

namespace fs = std::filesystem;

Job::Job(RunSetup setup, const Ranks& ranks, const StopRequest* stop)
    : setup_(std::move(setup)),
      ranks_(ranks),
      stop_(stop, ranks.world()),
      checkpoints_(setup_.directory.checkpoints(), setup_.keep),
      status_(setup_.directory),
      history_(setup_.best) {}

RunStart Job::examine(const ResumePoint& from, CheckpointCheck check) const {
  require_memory(ranks_, memory_plan(), memory_advice());
  RunStart start = find_run_start(from, setup_.seed, files(), ranks_, check);
  require_inputs(start);
  on_rank_0(ranks_, [&] {
    if (start.is_afresh()) {
      if (!from.is_start())
        require_no_lost_checkpoints(setup_.directory, setup_.checkpoints, setup_.unit);
      return;
    }
    require_state(start.checkpoint, start.state);
    if (from.is_own) IterationLog::require_readable(setup_.directory);
  });
  if (!start.is_afresh() && from.is_own) (void)read_history();  // throws if it is damaged
  return start;
}

void Job::report_differences(const StateInfo& state) const {
  for (const auto& change : config_changes(state.config, setup_.config))
    if (!change.starts_with("Output/Directory:"))  // that one is the user's order
      TAPER_WARN("differs from the checkpoint's run file: " << change);
  const RankGrid now = setup_.grid;
  const std::optional<RankGrid> before = find_rank_grid(state.layout);
  if (!before || *before == now) return;
  const int exact_tp = setup_.is_exact ? files().config.kv_heads : 0;  // degrees up to it
  if (std::max(before->tp, now.tp) > exact_tp)
    TAPER_INFO("earlier " << setup_.unit << "s were trained in layout (TPxDP) " << state.layout
                          << ", from here on it is " << to_string(now)
                          << ": gradients are summed in another order, so the results are close to "
                             "those of an unchanged run (equal up to rounding, not bit for bit)");
}

void Job::warn_of_lost_metrics() const {
  const std::string loss = IterationLog::lost_metrics(setup_.directory, setup_.unit);
  if (!loss.empty()) TAPER_WARN(loss);
}

void Job::report_start(const RunStart& start) const {
  if (ranks_.rank() != 0) return;
  if (!start.is_afresh()) {
    report_differences(start.state);
    warn_of_lost_metrics();
  }
  report_later_results(setup_.directory, start.is_afresh() ? 0 : start.state.iteration,
                       Removal::kPlanned, setup_.unit);
}

std::string Job::start_text(const RunStart& start) const {
  const std::int64_t done = start.state.iteration, last = setup_.checkpoints.last;
  std::string over;
  if (last > 0 && done >= last)
    over = "Training/Iterations is " + std::to_string(last);
  else if (ranks_.rank() == 0 && !start.is_afresh() && setup_.best.patience > 0 &&
           counting(recorded_history(), done, planned_iterations()).is_exhausted())
    over = "it ended early (Evaluation/Patience)";
  return taper::start_text(start, beginning(), setup_.unit, over);
}

// Weights and state: of a checkpoint, or those that the run begins with.
void Job::restore(const ResumePoint& from) {
  std::optional<StateInfo> state;
  if (!from.checkpoint.empty())
    state = CheckpointStore::load(from.checkpoint, ranks_, files(), trained_model(), parts());
  else if (!from.store.empty())
    state = CheckpointStore(from.store, setup_.keep)
                .load_newest(ranks_, files(), trained_model(), parts());
  if (!state) {
    load_start();
    return;
  }
  // Of the one that was loaded, which need not be the one that examine() saw.
  const fs::path& place = from.checkpoint.empty() ? from.store : from.checkpoint;
  require_same_seed(place, state->seed, setup_.seed);
  set_state(*state, place);
  done_ = saved_ = state->iteration;
  if (ranks_.rank() == 0) report_differences(*state);
  TAPER_INFO((from.is_own ? "resuming after " : "a new run, after ")
             << setup_.unit << ' ' << done_ << (from.is_own ? "" : " of another one"));
}

EvaluationHistory Job::recorded_history() const {
  const fs::path file = setup_.directory.best();
  if (!fs::exists(file)) return EvaluationHistory(setup_.best);
  return EvaluationHistory::from_json(read_text_file(file), path_text(file), setup_.best);
}

EvaluationHistory Job::read_history() const {
  EvaluationHistory history(setup_.best);
  if (setup_.best.metric.empty()) return history;
  const auto entries = from_rank_0(ranks_, [&] { return recorded_history().entries(); });
  for (const auto& entry : entries) history.note(entry.iteration, entry.value);
  return history;
}

EvaluationHistory Job::counting(EvaluationHistory history, std::int64_t done,
                                std::int64_t total) const {
  history.forget_after(done);
  // A run that ended here and goes on now must not differ from one that never ended.
  if (done < total) history.forget_between(setup_.evaluate_every);
  return history;
}

void Job::start(const ResumePoint& from) {
  ranks_.progress.set_phase("start");
  examine(from, CheckpointCheck::kHead);
  const bool goes_on = from.is_own && !from.is_start();
  same_command_goes_on_ = goes_on && from.checkpoint.empty();
  if (ranks_.rank() == 0) {
    fs::create_directories(setup_.directory.path());
    checkpoints_.remove_unfinished();
    remove_hang_reports(setup_.directory.path().string());
    status_ = StatusFile(setup_.directory, planned_iterations());
    status_.write(RunState::kPending, goes_on ? status_.last_iteration() : 0);
  }
  barrier(ranks_.world());  // the others read checkpoints only now
  create();
  restore(from);
  total_ = planned_iterations();
  if (done_ > 0) history_ = counting(read_history(), done_, total_);
  if (const auto best = history_.best()) checkpoints_.keep_always(best->iteration);
  // Before any other result: if a kill comes first, nothing is left that is taken for a run, and
  // the same command may begin again.
  if (!from.is_own) save_checkpoint(done_);
  if (ranks_.rank() == 0) open_results(goes_on);
}

void Job::open_results(bool goes_on) {
  report_later_results(setup_.directory, done_, Removal::kNow, setup_.unit);
  if (goes_on) warn_of_lost_metrics();
  checkpoints_.remove_after(done_);
  const bool recalls = setup_.journal && goes_on;
  if (recalls) setup_.directory.move_rollouts_to_journal(done_);
  setup_.directory.remove_rollouts_after(done_);
  setup_.directory.remove_journal(recalls ? done_ : std::numeric_limits<std::int64_t>::max());
  if (done_ == 0) fs::remove(setup_.directory.best());  // of a run that this one replaces
  log_ = std::make_unique<IterationLog>(setup_.directory, setup_.config, run_facts(ranks_), done_);
  status_ = StatusFile(setup_.directory, total_);
  status_.write(RunState::kRunning, done_);
}

bool Job::is_checkpoint_due(std::int64_t iteration) const {
  return setup_.checkpoints.is_due(iteration);
}

void Job::conclude(std::int64_t iteration, bool with_checkpoint,
                   const std::function<void()>& record) {
  if (with_checkpoint)
    save_checkpoint(iteration, record);
  else
    record();
}

void Job::save_checkpoint(std::int64_t iteration, const std::function<void()>& record) {
  StateInfo state{iteration, 0, setup_.seed, setup_.config};
  add_state(state);
  const auto complete_results = [&] {
    if (record) record();
    if (log_) log_->flush();
  };
  checkpoints_.save(ranks_, files(), trained_model(), state, complete_results, parts());
  saved_ = iteration;
}

void Job::save_unsaved() {
  if (saved_ < done_) save_checkpoint(done_);
}

bool Job::note_evaluation(std::int64_t iteration, const MetricValues& figures) {
  history_.note_figures(iteration, figures);
  const auto best = history_.best();
  return best && best->iteration == iteration;
}

void Job::keep_best() {
  const auto best = history_.best();
  if (!best) return;
  checkpoints_.keep_always(best->iteration);
  if (ranks_.rank() == 0) write_best_file(setup_.directory, history_, checkpoints_);
}

IterationEnd Job::run_iterations() {
  Timer since_status;
  while (done_ < total_ && !history_.is_exhausted()) {
    const IterationEnd end = stop_.reached() ? IterationEnd::kStopped : iterate(done_ + 1);
    if (end != IterationEnd::kFinished) return end;
    ++done_;
    if (!log_ || since_status.seconds() < setup_.status_seconds) continue;
    status_.write(RunState::kRunning, done_);
    since_status.restart();
  }
  return IterationEnd::kFinished;
}

void Job::complete() {
  if (!log_) return;
  log_->flush();
  status_.write(RunState::kCompleted, done_, history_.is_exhausted() ? "no more progress" : "");
  report_completed();
}

void Job::stop_early() {
  save_unsaved();
  if (!log_) return;
  log_->flush();
  status_.write(RunState::kStopped, done_, to_string(stop_.reason()));
  TAPER_INFO(
      "stopped after " << setup_.unit << ' ' << done_ << " (" << to_string(stop_.reason())
                       << "); the same command "
                       << (same_command_goes_on_ ? "resumes" : "with --resume auto resumes"));
}

ExitCode Job::run(const ResumePoint& from) {
  start(from);
  begin();
  // A run without further progress is finished like a complete one.
  if (run_iterations() == IterationEnd::kStopped || finish() == IterationEnd::kStopped) {
    stop_early();
    return ExitCode::kStoppedEarly;
  }
  complete();
  return ExitCode::kDone;
}

}  // namespace taper
