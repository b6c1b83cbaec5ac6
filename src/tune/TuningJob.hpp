// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/Error.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "instance/TrainingModel.hpp"
#include "run/EvaluationHistory.hpp"
#include "run/IterationLog.hpp"
#include "run/JobLife.hpp"
#include "run/StatusFile.hpp"
#include "session/StopRequest.hpp"
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
  // What each rank will hold.
  const MemoryPlan& memory_plan() const override { return plan_; }

  // All that can be known before anything is allocated or written: whether the weights to start
  // from are there and are this model's, whether the memory plans fit their hosts, whether the
  // checkpoint to go on from is one of these examples, and whether a run that begins afresh without
  // being told to has lost its checkpoints. Throws Error. Collective over the world.
  RunStart examine(const ResumePoint& from, CheckpointCheck check) const override;

  // What a run with that start would find otherwise than its checkpoint's run had it, and would
  // remove, into the log of rank 0. run() says the same of the start that it makes. Not collective.
  void report_start(const RunStart& start) const override;
  std::string outlook(const RunStart& start) const override;

  // Examines, allocates, loads or draws the weights, trains and saves the model. A stop request is
  // honoured between steps: the state is saved then, and a run from it has the bits of one that was
  // never stopped. kDone or kStoppedEarly. Collective over the world.
  ExitCode run(const ResumePoint& from) override;
  ExitCode run() { return run(ResumePoint()); }  // from the model directory

 protected:
  // The options must outlive the job. Reads the model's configuration and tokenizer. Throws Error
  // where something is missing.
  TuningJob(const TuningOptions& options, const Ranks& ranks, const TuningContext& context,
            const HeadChoice& head);

  // A batch of which accumulate() has set the gradient.
  struct Batch {
    MetricValues figures;     // "train/loss" and what else is to be recorded
    std::int64_t tokens = 0;  // that the model has seen
  };

  // The name of the command, for messages.
  virtual const char* command() const = 0;
  // Of the examples: where it changes, positions of older checkpoints mean nothing.
  virtual std::uint64_t fingerprint() const = 0;
  // Steps of the run from position `next` on, which is that of step `done`.
  virtual std::int64_t steps_left(std::uint64_t next, std::int64_t done) const = 0;
  // Sets the gradient of the step that begins at position `next`, which becomes that of the step
  // behind. Collective over the world.
  virtual Batch accumulate(std::uint64_t& next) = 0;
  virtual bool has_validation() const = 0;
  // Held-out figures, "val/...": the same in any layout. Collective over the world.
  virtual MetricValues validate() = 0;
  // What the log says of the figures of a step; NaN where there is none.
  using ValueOf = std::function<double(const std::string&)>;
  virtual std::string train_text(const ValueOf& value) const = 0;
  virtual std::string held_out_text(const ValueOf& value) const = 0;
  // One line about the examples; empty: none.
  virtual std::string examples_text() const = 0;
  // The weights of a run that begins afresh, in words.
  virtual std::string start_text() const;
  // Whether the run begins with weights of the model directory; else with those of draw_weights().
  virtual bool loads_weights() const { return true; }
  virtual void draw_weights() {}

  const TrainPassOptions& pass_options() const { return pass_options_; }
  const ModelFiles& files() const { return files_; }
  const Ranks& ranks() const { return ranks_; }
  TrainingModel& model() { return model_; }

 private:
  void start(const ResumePoint& from);
  void restore(const ResumePoint& from);
  // What is otherwise than in the run file of a checkpoint, into the log.
  void report_differences(const StateInfo& state) const;
  void require_same_examples(const std::filesystem::path& checkpoint, const StateInfo& state) const;
  ExitCode train();
  // What one optimizer step is about: the figures of its batch, and what the optimizer said.
  MetricValues step(std::int64_t& tokens);
  MetricValues held_out_figures();
  // What the metrics tell about the steps so far. Collective.
  EvaluationHistory load_history() const;
  // Whether the weights behind the last step are the best so far by their held-out figures.
  bool is_best(const MetricValues& figures);
  // Keeps the checkpoint of the best weights, and says so in best.json.
  void keep_best();
  bool validates_after(std::int64_t step) const;
  void record(const MetricValues& metrics);
  void print(const MetricValues& metrics, std::int64_t tokens, double seconds) const;
  void save_checkpoint(const MetricValues& metrics);
  void save_result();
  void stop_early();

  const TuningOptions& options_;
  const Ranks& ranks_;
  TrainPassOptions pass_options_;
  ModelFiles files_;
  TrainingModel model_;
  MemoryPlan plan_;
  std::unique_ptr<Arena> arena_;
  CheckpointStore checkpoints_;
  std::string config_;
  StopAgreement stop_;
  std::unique_ptr<StatusFile> status_;  // on rank 0, like the log
  std::unique_ptr<IterationLog> log_;
  EvaluationHistory history_;                       // of the figure that says which is best
  std::uint64_t next_ = 0;                          // position of the next example
  std::int64_t done_ = 0, saved_ = -1, steps_ = 0;  // of the run; saved: the step of a checkpoint
};

}  // namespace taper
