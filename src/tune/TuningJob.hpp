// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/Timer.hpp"
#include "instance/TrainingModel.hpp"
#include "run/Job.hpp"
#include "tune/TuningOptions.hpp"

namespace taper {

// What the results of a fine-tuning job say of it, and what stops it.
struct TuningContext {
  std::string config = {};            // the parameters in use
  const StopRequest* stop = nullptr;  // none: nothing stops it
};

// Training on examples that are given, step by step: what fine-tuning jobs of all kinds have in
// common. What an example is and what is learned of it, a kind says by the functions it overrides.
class TuningJob : public Job {
 public:
  const MemoryPlan& memory_plan() const override { return plan_; }

 protected:
  // The options must outlive the job. Reads the model's configuration and tokenizer. Throws Error
  // if something is missing.
  TuningJob(const TuningOptions& options, const Ranks& ranks, const TuningContext& context,
            const HeadChoice& head, int sequences_per_example);

  // A batch of which accumulate() has set the gradient.
  struct StepFigures {
    MetricValues figures;     // "train/loss" and what else is to be recorded
    std::int64_t tokens = 0;  // that the model has seen
  };

  // The name of the command, for messages.
  virtual const char* command() const = 0;
  // Of the examples: if it changes, positions of older checkpoints mean nothing.
  virtual std::uint64_t fingerprint() const = 0;
  // Steps of the run from position `next` on, which is that of step `done`.
  virtual std::int64_t steps_left(std::uint64_t next, std::int64_t done) const = 0;
  // Sets the gradient of the step that begins at position `next`, and advances `next` to the
  // position of the next step. Collective over the world.
  virtual StepFigures accumulate(std::uint64_t& next) = 0;
  virtual bool has_validation() const = 0;
  // Held-out figures, "val/...": the same in any layout. Collective over the world.
  virtual MetricValues validate() = 0;
  // What the log says of the figures of a step; NaN if there is none.
  using ValueOf = std::function<double(const std::string&)>;
  virtual std::string train_text(const ValueOf& value) const = 0;
  virtual std::string held_out_text(const ValueOf& value) const = 0;
  // One line about the examples; empty: none.
  virtual std::string examples_text() const = 0;
  std::string beginning() const override;
  // Whether the run begins with weights of the model directory; else they are drawn.
  virtual bool loads_weights() const { return true; }

  const ModelFiles& files() const override { return files_; }
  TrainingModel* trained_model() override { return &model_; }
  TrainingModel& model() { return model_; }
  const TrainPassOptions& pass_options() const { return pass_options_; }

 private:
  std::string memory_advice() const override;
  void require_inputs(const RunStart& start) const override;
  void require_state(const std::filesystem::path& checkpoint,
                     const StateInfo& state) const override;
  void create() override;
  void load_start() override;
  void set_state(const StateInfo& state, const std::filesystem::path& place) override;
  void add_state(StateInfo& state) const override;
  std::int64_t planned_iterations() const override { return done() + steps_left(next_, done()); }
  EvaluationHistory recorded_history() const override;
  void begin() override;
  IterationEnd iterate(std::int64_t step) override;
  IterationEnd finish() override;
  void report_completed() const override;

  // What one optimizer step is about: the figures of its batch, and what the optimizer said.
  MetricValues learn();
  MetricValues held_out_figures();
  bool validates_after(std::int64_t step) const;
  void print(std::int64_t step, const MetricValues& metrics, double seconds) const;

  const TuningOptions& options_;
  MemoryPlan plan_;
  TrainPassOptions pass_options_;
  ModelFiles files_;
  TrainingModel model_;
  std::unique_ptr<Arena> arena_;
  std::uint64_t next_ = 0;  // position of the next example
  // Of this job: its first step, and what it has seen and how long since.
  std::int64_t first_ = 0, tokens_ = 0;
  Timer timer_;
};

}  // namespace taper
