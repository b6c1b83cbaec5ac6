// SPDX-License-Identifier: Apache-2.0
#include "tune/TuningOptions_params.hpp"

#include "data/DataOptions_params.hpp"
#include "instance/ModelOptions_params.hpp"
#include "optim/OptimizerOptions_params.hpp"
#include "run/JobOptions_params.hpp"

namespace taper {
namespace {

// What every fine-tuning leaves behind, and when.
void describe_tuning_results(param::Section& schema, TuningOptions& o) {
  auto v = schema.section("Validation", "Evaluation on held-out examples during the run");
  v.integer("Every", o.validate_every,
            "Steps between evaluations, in addition to those at start and end; 0: off")
      .at_least(0);
  v.text("Best By", o.best_by,
         "Metric that selects the best checkpoint, which is kept in addition to the newest ones, "
         "e.g. val/loss (the smallest); empty: no best checkpoint");
  auto c = schema.section("Checkpoint", "Saved states");
  c.integer("Every", o.checkpoint.every,
            "Steps between checkpoints; 0: only when the run is stopped")
      .at_least(0);
  c.integer("Keep", o.checkpoint.keep, "Number of newest checkpoints to keep").at_least(1);
  auto out = schema.section("Output", "Where results are written");
  out.text("Directory", o.output, "Hugging Face directory of the trained model").not_empty();
  out.text("Run Directory", o.run_directory,
           "Directory for metrics.jsonl, run.h5, status.json and checkpoints; empty: Directory "
           "with .run appended");
}

}  // namespace

void describe(param::Section& schema, SftOptions& o) {
  describe_run(schema, o);
  describe_model(schema, o.model);
  describe_sft_data(schema, o.data);
  auto d = schema.section("Data");
  d.text("Task", o.task, "In-tree task to use without files: mix, sum, gcd or collatz");
  d.check([&o] { return task_problems(o.task); });
  d.number("Direct Fraction", o.direct_fraction,
           "Share of examples that give the answer directly, without working")
      .between(0, 1);
  d.number("Slip Rate", o.slip_rate, "Probability of a wrong step in worked examples")
      .between(0, 1);
  auto t = schema.section("Training", "The update of the weights");
  t.integer("Steps", o.steps, "Optimizer steps").at_least(1);
  t.integer("Epochs", o.epochs, "Passes over Data/Files; 0: use Steps instead").at_least(0);
  t.integer("Batch Tokens", o.batch_tokens, "Tokens per optimizer step, over all ranks")
      .at_least(1);
  t.flag("From Scratch", o.from_scratch,
         "Start from random weights with the shapes of the directory's config.json");
  describe_passes(t, o.training);
  describe_optimizer(schema, o.adamw, o.schedule, ScheduleEnd::kOfRun);
  describe_tuning_results(schema, o);
  schema.check([&o] { return o.problems(); });
}

void describe(param::Section& schema, RewardModelOptions& o) {
  describe_run(schema, o);
  describe_model(schema, o.model);
  describe_preference_data(schema, o.data);
  auto t = schema.section("Training", "The update of the weights");
  t.integer("Steps", o.steps, "Optimizer steps; 0: use Epochs instead").at_least(0);
  t.integer("Epochs", o.epochs, "Passes over Data/Files; 0: use Steps instead").at_least(0);
  t.integer("Batch Pairs", o.batch_pairs, "Pairs per optimizer step, over all ranks").at_least(1);
  t.number(
       "Center Rewards", o.center_rewards,
       "Factor of the squared sum of the two rewards in the loss, which keeps rewards around zero")
      .at_least(0);
  describe_passes(t, o.training);
  describe_optimizer(schema, o.adamw, o.schedule, ScheduleEnd::kOfRun);
  describe_tuning_results(schema, o);
  schema.check([&o] { return o.problems(); });
}

}  // namespace taper
