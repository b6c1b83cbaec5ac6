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
  auto v = schema.section("Validation", "Held-out figures during the run");
  v.integer("Every", o.validate_every,
            "Steps between measurements, besides those at start and end; 0 is off")
      .at_least(0);
  v.text("Best By", o.best_by,
         "Held-out figure by which the best checkpoint is kept beside the newest ones, e.g. "
         "val/loss (the smallest); empty: none is");
  auto c = schema.section("Checkpoint", "Saved states");
  c.integer("Every", o.checkpoint.every,
            "Steps between checkpoints; 0: only where the run is stopped")
      .at_least(0);
  c.integer("Keep", o.checkpoint.keep, "Newest checkpoints that are kept").at_least(1);
  auto out = schema.section("Output", "Where results go");
  out.text("Directory", o.output, "Hugging Face directory of the result").not_empty();
  out.text("Run Directory", o.run_directory,
           "metrics.jsonl, run.h5, status.json, checkpoints; empty: Directory with .run behind it");
}

}  // namespace

void describe(param::Section& schema, SftOptions& o) {
  auto run = describe_run(schema, o.seed, o.hang_seconds);
  describe_deadline(run, o.deadline_margin);
  describe_model(schema, o.model);
  describe_sft_data(schema, o.data);
  auto d = schema.section("Data");
  d.text("Task", o.task, "In-tree task where there are no files: mix, sum, gcd or collatz");
  d.check([&o] { return task_problems(o.task); });
  d.number("Direct Fraction", o.direct_fraction,
           "Share of examples that give the answer without work")
      .between(0, 1);
  d.number("Slip Rate", o.slip_rate, "Probability of a wrong step in worked examples")
      .between(0, 1);
  auto t = schema.section("Training", "The update of the weights");
  t.integer("Steps", o.steps, "Optimizer steps").at_least(1);
  t.integer("Epochs", o.epochs, "Passes over Data/Files, instead of Steps; 0: by Steps")
      .at_least(0);
  t.integer("Batch Tokens", o.batch_tokens, "Tokens per optimizer step, over all ranks")
      .at_least(1);
  t.flag("From Scratch", o.from_scratch,
         "Start from random weights of the directory's config.json");
  describe_passes(t, o.training);
  describe_optimizer(schema, o.adamw, o.schedule, ScheduleEnd::kOfRun);
  describe_tuning_results(schema, o);
  schema.check([&o] { return o.problems(); });
}

void describe(param::Section& schema, RewardModelOptions& o) {
  auto run = describe_run(schema, o.seed, o.hang_seconds);
  describe_deadline(run, o.deadline_margin);
  describe_model(schema, o.model);
  describe_preference_data(schema, o.data);
  auto t = schema.section("Training", "The update of the weights");
  t.integer("Steps", o.steps, "Optimizer steps, instead of Epochs; 0: by Epochs").at_least(0);
  t.integer("Epochs", o.epochs, "Passes over Data/Files; 0: by Steps").at_least(0);
  t.integer("Batch Pairs", o.batch_pairs, "Pairs per optimizer step, over all ranks").at_least(1);
  t.number("Center Rewards", o.center_rewards,
           "Factor of the square of the two rewards' sum in the loss, which keeps them around zero")
      .at_least(0);
  describe_passes(t, o.training);
  describe_optimizer(schema, o.adamw, o.schedule, ScheduleEnd::kOfRun);
  describe_tuning_results(schema, o);
  schema.check([&o] { return o.problems(); });
}

}  // namespace taper
