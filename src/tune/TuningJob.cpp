// SPDX-License-Identifier: Apache-2.0
#include "tune/TuningJob.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "checkpoint/SaveModel.hpp"
#include "optim/OptimizerStep.hpp"
#include "results/MetricsLog.hpp"
#include "session/SharedArena.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

TrainPassOptions pass_options_of(const TuningOptions& o, int sequences_per_example,
                                 MemoryPhase phase) {
  TrainPassOptions pass = o.training.train_pass(o.model.precision());
  pass.max_sequences *= sequences_per_example;
  pass.owner.phase = phase;
  return pass;
}

ModelFiles open_model(const TuningOptions& o, const HeadChoice& head) {
  ModelFiles files(o.model.directory, "Model/Directory", head);
  TAPER_VALIDATE(!files.config.eos_ids.empty(),
                 path_text(files.directory / "config.json")
                     << " has no eos_token_id (each example ends with it); add it");
  return files;
}

RunSetup setup_of(const TuningOptions& o, const std::string& config, int ranks) {
  return {.directory = RunDirectory(o.run_path()),
          .config = config,
          .seed = o.seed,
          .grid = {o.training.tp, ranks / o.training.tp},
          .is_exact = o.training.exactness == Exactness::kLayout,
          .unit = "step",
          .checkpoints = {o.checkpoint.every, 0},
          .keep = o.checkpoint.keep,
          .best = {o.best_by, 0, 0.0},
          .evaluate_every = o.validate_every,
          .status_seconds = 2.0};
}

}  // namespace

TuningJob::TuningJob(const TuningOptions& options, const Ranks& ranks, const TuningContext& context,
                     const HeadChoice& head, int sequences_per_example)
    : Job(setup_of(options, context.config, ranks.size()), ranks, context.stop),
      options_(options),
      pass_options_(pass_options_of(options, sequences_per_example, plan_.phase("training"))),
      files_(open_model(options, head)),
      model_(files_, ranks,
             {options.model.type, options.training.tp, options.training.tp, pass_options_,
              options.adamw, head.output == OutputHead::kScalar ? "reward model" : "policy"}) {
  model_.add_memory(plan_);
}

std::string TuningJob::memory_advice() const {
  return "lower Training/Max Tokens or set Training/Activation Checkpointing";
}

void TuningJob::require_inputs(const RunStart& start) const {
  if (start.is_afresh() && loads_weights()) files_.open_weights();
}

// Throws Error if the checkpoint was made by another command or with other examples: its
// position means nothing here.
void TuningJob::require_state(const fs::path& checkpoint, const StateInfo& state) const {
  TAPER_VALIDATE(state.examples && state.examples->is_of(command()),
                 "the checkpoint " << path_text(checkpoint) << " was not made by taper "
                                   << command() << "; use --resume none");
  TAPER_VALIDATE(state.examples->fingerprint == fingerprint(),
                 "the checkpoint " << path_text(checkpoint)
                                   << " was made with other examples (Data/Files, Data/Task, or "
                                      "what decides how they are read, have changed); put them "
                                      "back, or start over with --resume none");
}

std::string TuningJob::beginning() const {
  return "from " + path_text(options_.model.directory);
}

void TuningJob::create() {
  arena_ = make_arena(ranks(), plan_);
  model_.create(*arena_,
                files_.rope_table(std::min(pass_options_.max_rows, files_.config.max_positions)));
}

void TuningJob::load_start() {
  loads_weights() ? model_.load_masters() : model_.draw_masters(options_.seed);
}

void TuningJob::set_state(const StateInfo& state, const fs::path& place) {
  require_state(place, state);
  next_ = state.examples->next;
}

void TuningJob::add_state(StateInfo& state) const {
  state.examples = {command(), next_, fingerprint()};
}

// Of the metrics: the figures of a step are there before its checkpoint, best.json is written after
// it.
EvaluationHistory TuningJob::recorded_history() const {
  const fs::path log = setup().directory.metrics();
  EvaluationHistory found(setup().best);
  if (fs::exists(log))
    for (const auto& record : read_metrics_log(log))
      found.note_figures(record.iteration, record.values);
  return found;
}

void TuningJob::begin() {
  if (const std::string text = examples_text(); !text.empty())
    TAPER_INFO(text << "; " << count_text(total() - done(), "step") << " to go");
  ranks().progress.set_phase(command());
  if (done() == 0 && validates_after(0)) {
    const MetricValues metrics = held_out_figures();
    if (log()) log()->add_values(0, metrics);
    (void)note_evaluation(0, metrics);
    print(0, metrics, 1.0);
  }
  first_ = done() + 1;
  timer_.restart();
}

MetricValues TuningJob::learn() {
  model_.gradients().clear(ranks().exec);
  StepFigures step = accumulate(next_);
  tokens_ += step.tokens;
  ScheduleOptions schedule = options_.schedule;
  if (schedule.total_steps == 0)
    schedule.total_steps = std::max(total(), schedule.warmup_steps + 1);
  const OptimizerReport report = make_step(ranks().exec, model_.optimizer(), model_.gradients(),
                                           schedule, [this] { model_.publish(); });
  MetricValues metrics = std::move(step.figures);
  metrics.emplace_back("train/grad_norm", report.grad_norm);
  metrics.emplace_back("train/lr", report.learning_rate);
  metrics.emplace_back("train/skipped_steps", report.skipped ? 1.0 : 0.0);
  return metrics;
}

MetricValues TuningJob::held_out_figures() {
  const PhaseScope phase(ranks().progress, "validation");
  return validate();
}

bool TuningJob::validates_after(std::int64_t step) const {
  return has_validation() && (step == 0 || step == total() ||
                              (options_.validate_every > 0 && step % options_.validate_every == 0));
}

void TuningJob::print(std::int64_t step, const MetricValues& metrics, double seconds) const {
  const auto value = [&](const std::string& name) { return value_of(metrics, name); };
  if (step == 0) {
    TAPER_INFO("before the first step: " << held_out_text(value));
    return;
  }
  const double epoch = value("train/epoch");
  const std::string held_out = held_out_text(value);
  TAPER_INFO(format_text("step %6lld / %lld", static_cast<long long>(step),
                         static_cast<long long>(total()))
             << (std::isnan(epoch) ? "" : format_text("   epoch %.2f", epoch)) << "   "
             << train_text(value)
             << format_text("   grad norm %.3f   %.0f tokens/s of all ranks",
                            value("train/grad_norm"), static_cast<double>(tokens_) / seconds)
             << (held_out.empty() ? "" : "   ") << held_out);
}

IterationEnd TuningJob::iterate(std::int64_t step) {
  ranks().progress.set_step(step);
  MetricValues metrics = learn();
  const double seconds = timer_.seconds();
  bool is_due = is_checkpoint_due(step);
  if (validates_after(step)) {
    add(metrics, held_out_figures());
    is_due = note_evaluation(step, metrics) || is_due;
  }
  conclude(step, is_due, [&] {
    if (log()) log()->add_values(step, metrics);
  });
  if (validates_after(step)) keep_best();
  if (step % 20 == 0 || step == first_ || step == total() || validates_after(step))
    print(step, metrics, seconds);
  return IterationEnd::kFinished;
}

IterationEnd TuningJob::finish() {
  save_model(files_, model_, options_.output);
  return IterationEnd::kFinished;
}

void TuningJob::report_completed() const {
  TAPER_INFO("completed: " << count_text(done(), "step") << ", results in "
                           << path_text(options_.output) << " (metrics in "
                           << path_text(options_.run_path()) << ")");
}

}  // namespace taper
