// SPDX-License-Identifier: Apache-2.0
#include "train/TrainJob.hpp"

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "profile/RunIdentity.hpp"
#include "results/IterationName.hpp"
#include "results/RolloutFolder.hpp"
#include "run/LaterResults.hpp"
#include "session/Watchdog.hpp"

namespace taper {
// record: writes what is still missing of the iteration in the log. A resumed run does not repeat
// the iterations up to a checkpoint, so they are in all results before it is there.
void TrainJob::save_checkpoint(std::int64_t iteration, const std::function<void()>& record) {
  checkpoints_.save(
      ranks_, files_, model_,
      {iteration,
       model_.optimizer().steps(),
       options_.seed,
       config_text_,
       learned_,
       {},
       kl_coef_,
       prompt_batches_},
      [&] {
        record();
        if (log_) log_->flush();
      },
      critic_ ? std::optional(critic_->saved()) : std::nullopt);
  saved_ = iteration;
}

ExitCode TrainJob::run(const ResumePoint& from) {
  ranks_.progress.set_phase("start");
  examine(from, CheckpointCheck::kHead);
  const std::filesystem::path output = options_.output;
  const bool goes_on = from.is_own && !from.is_start();
  same_command_goes_on_ = goes_on && from.checkpoint.empty();
  if (ranks_.rank() == 0) {
    std::filesystem::create_directories(output / "rollouts");
    checkpoints_.remove_unfinished();
    remove_hang_reports(output.string());
    status_.write(RunState::kPending, goes_on ? status_.last_iteration() : 0);
  }
  barrier(ranks_.world());  // the others read checkpoints only now
  create();
  finished_ = saved_ = restore(from);
  history_ = finished_ > 0 ? load_history() : EvaluationHistory(options_.evaluation.best);
  if (const auto best = history_.best()) checkpoints_.keep_always(best->iteration);
  learned_ = generator_.save_planner();
  // Before any other result: where a kill comes first, nothing is left that is taken for a run, and
  // the same command may begin again.
  if (!from.is_own) save_checkpoint(finished_, [] {});
  if (ranks_.rank() == 0) {
    report_later_results(output, finished_, Removal::kNow);
    if (const std::string loss = IterationLog::lost_metrics(output); goes_on && !loss.empty())
      TAPER_WARN(loss);
    checkpoints_.remove_after(finished_);
    remove_rollouts_after(output / "rollouts", finished_);
    log_ = std::make_unique<IterationLog>(output, config_text_, job_facts(ranks_), finished_);
    status_.write(RunState::kRunning, finished_);
  }
  return run_iterations();
}

ExitCode TrainJob::run_iterations() {
  announce();
  if (finished_ >= options_.training.iterations)
    TAPER_INFO("nothing to do: iteration "
               << finished_ << " of " << options_.training.iterations
               << " is finished (raise Training/Iterations to continue)");
  while (finished_ < options_.training.iterations && !history_.is_exhausted()) {
    const IterationEnd end = stop_.reached() ? IterationEnd::kStopped : iterate(finished_ + 1);
    if (end == IterationEnd::kNoProgress) break;
    if (end == IterationEnd::kStopped) {
      stop_early();
      return ExitCode::kStoppedEarly;
    }
    ++finished_;
    figures_.reset();
    if (log_) status_.write(RunState::kRunning, finished_);
  }
  if (saved_ < finished_) save_checkpoint(finished_, [] {});  // ended before its last iteration
  if (!evaluate_at_the_end()) {
    stop_early();
    return ExitCode::kStoppedEarly;
  }
  if (log_) {
    log_->flush();
    status_.write(RunState::kCompleted, finished_,
                  history_.is_exhausted() ? "no more progress" : "");
    report_completed();
  }
  return ExitCode::kDone;
}

// Of the run in this directory, by however many jobs.
void TrainJob::report_completed() const {
  const std::int64_t first = log_->first_iteration(), count = finished_ - first + 1;
  TAPER_INFO("completed: " << count_text(count, "iteration")
                           << (first > 1 && count > 0 ? " (" + std::to_string(first) + " to " +
                                                            std::to_string(finished_) + ")"
                                                      : "")
                           << ", results in " << path_text(options_.output));
  const BestOptions& by = options_.evaluation.best;
  const auto best = history_.best();
  if (!best) return;
  const std::string which =
      best->iteration == 0 ? "the initial weights of the run" : iteration_name(best->iteration);
  TAPER_INFO("best by " << by.metric << ": " << which << format_text(" (%.4f)", best->value));
  if (history_.is_exhausted())
    TAPER_INFO(
        "ended early: "
        << count_text(history_.without_progress(), "evaluation")
        << " without progress of more than " << format_text("%g", by.min_delta)
        << " (Evaluation/Patience, Min Delta; with more patience the same command continues)");
}

void TrainJob::stop_early() {
  ranks_.progress.set_phase("save_checkpoint");
  if (saved_ < finished_) save_checkpoint(finished_, [] {});
  if (!log_) return;
  log_->flush();
  status_.write(RunState::kStopped, finished_, to_string(stop_.reason()));
  TAPER_INFO("stopped after iteration "
             << finished_ << " (" << to_string(stop_.reason()) << "); the same command "
             << (same_command_goes_on_ ? "resumes" : "with --resume auto resumes"));
}

}  // namespace taper
