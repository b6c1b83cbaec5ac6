// SPDX-License-Identifier: Apache-2.0
#include "tune/TuningJob.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "checkpoint/SaveModel.hpp"
#include "comm/Collectives.hpp"

namespace taper {

MetricValues TuningJob::step(std::int64_t& tokens) {
  const FloatVector gradient = model_.gradients().all();
  std::fill_n(gradient.data(), gradient.extent(0), 0.0f);
  Batch batch = accumulate(next_);
  tokens += batch.tokens;
  ScheduleOptions schedule = options_.schedule;
  if (schedule.total_steps == 0) schedule.total_steps = std::max(steps_, schedule.warmup_steps + 1);
  const double rate = learning_rate(schedule, model_.optimizer().steps());
  const OptimizerReport report = model_.optimizer().step(ranks_.exec, model_.gradients(), rate);
  model_.publish();
  MetricValues metrics = std::move(batch.figures);
  metrics.emplace_back("train/grad_norm", report.grad_norm);
  metrics.emplace_back("train/lr", rate);
  metrics.emplace_back("train/skipped_steps", report.skipped ? 1.0 : 0.0);
  return metrics;
}

MetricValues TuningJob::held_out_figures() {
  ranks_.progress.set_phase("validation");
  MetricValues figures = validate();
  ranks_.progress.set_phase(command());
  return figures;
}

bool TuningJob::validates_after(std::int64_t step) const {
  return has_validation() && (step == 0 || step == steps_ ||
                              (options_.validate_every > 0 && step % options_.validate_every == 0));
}

void TuningJob::print(const MetricValues& metrics, std::int64_t tokens, double seconds) const {
  const auto value = [&](const std::string& name) { return value_of(metrics, name); };
  if (done_ == 0) {
    TAPER_INFO("before the first step: " << held_out_text(value));
    return;
  }
  const double epoch = value("train/epoch");
  const std::string held_out = held_out_text(value);
  TAPER_INFO(format_text("step %6lld / %lld", static_cast<long long>(done_),
                         static_cast<long long>(steps_))
             << (std::isnan(epoch) ? "" : format_text("   epoch %.2f", epoch)) << "   "
             << train_text(value)
             << format_text("   grad norm %.3f   %.0f tokens/s of all ranks",
                            value("train/grad_norm"), static_cast<double>(tokens) / seconds)
             << (held_out.empty() ? "" : "   ") << held_out);
}

void TuningJob::record(const MetricValues& metrics) {
  if (log_) log_->add_values(done_, metrics);
}

// What the step measured is in the results before its checkpoint is there.
void TuningJob::save_checkpoint(const MetricValues& metrics) {
  ranks_.progress.set_phase("save_checkpoint");
  StateInfo info{done_, model_.optimizer().steps(), options_.seed, config_};
  info.data = {static_cast<std::int64_t>(next_), static_cast<std::int64_t>(fingerprint())};
  checkpoints_.save(ranks_, files_, model_, info, [&] {
    if (!metrics.empty()) record(metrics);
    if (log_) log_->flush();
  });
  saved_ = done_;
  ranks_.progress.set_phase(command());
}

void TuningJob::stop_early() {
  if (saved_ < done_ && done_ > 0) save_checkpoint({});
  if (!log_) return;
  log_->flush();
  status_->write(RunState::kStopped, done_, to_string(stop_.reason()));
  TAPER_INFO("stopped after step " << done_ << " (" << to_string(stop_.reason())
                                   << "); the same command resumes");
}

ExitCode TuningJob::train() {
  constexpr double kStatusSeconds = 2.0;
  ranks_.progress.set_phase(command());
  if (done_ == 0 && validates_after(0)) {
    const MetricValues metrics = held_out_figures();
    record(metrics);
    (void)is_best(metrics);
    print(metrics, 0, 1.0);
  }
  Timer timer, since_status;
  std::int64_t tokens = 0;
  const std::int64_t first = done_ + 1;
  while (done_ < steps_) {
    if (stop_.reached()) return ExitCode::kStoppedEarly;
    ranks_.progress.set_step(done_ + 1);
    MetricValues metrics = step(tokens);
    ++done_;
    const double seconds = timer.seconds();
    bool is_due = options_.checkpoint.every > 0 && done_ % options_.checkpoint.every == 0;
    if (validates_after(done_)) {
      add(metrics, held_out_figures());
      is_due = is_best(metrics) || is_due;
    }
    is_due ? save_checkpoint(metrics) : record(metrics);
    if (validates_after(done_)) keep_best();
    if (done_ % 20 == 0 || done_ == first || done_ == steps_ || validates_after(done_))
      print(metrics, tokens, seconds);
    if (log_ && since_status.seconds() > kStatusSeconds) {
      status_->write(RunState::kRunning, done_);
      since_status.restart();
    }
  }
  return ExitCode::kDone;
}

void TuningJob::save_result() {
  save_model(ranks_, files_, model_, options_.output);
  if (!log_) return;
  log_->flush();
  status_->write(RunState::kCompleted, done_);
  TAPER_INFO("completed: " << count_text(done_, "step") << ", results in "
                           << path_text(options_.output) << " (metrics in "
                           << path_text(options_.run_path()) << ")");
}

ExitCode TuningJob::run(const ResumePoint& from) {
  start(from);
  const ExitCode code = train();
  if (code == ExitCode::kStoppedEarly)
    stop_early();
  else
    save_result();
  return code;
}

}  // namespace taper
