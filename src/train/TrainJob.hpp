// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "instance/TrainingModel.hpp"
#include "reward/Judge.hpp"
#include "rl/PolicyTrainer.hpp"
#include "rollout/Generator.hpp"
#include "run/IterationLog.hpp"
#include "run/JobLife.hpp"
#include "run/PhaseTimer.hpp"
#include "run/ResumePoint.hpp"
#include "run/RunStart.hpp"
#include "run/StatusFile.hpp"
#include "session/StopRequest.hpp"
#include "train/Critic.hpp"
#include "train/Evaluation.hpp"
#include "train/Rollouts.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// How an iteration ended.
enum class IterationEnd {
  kFinished,
  kStopped,     // by a stop request, before the update: it will be repeated
  kNoProgress,  // before anything was generated: the patience of the evaluations is over
};

// The synchronous RLHF iteration: prompts -> generate -> reward, reference, values -> advantages ->
// update of critic and policy -> publish.
class TrainJob : public Job {
 public:
  // `config_text` is the parameters in use, for the results. The spawner is needed where a reward
  // is a command. Collective over the world.
  TrainJob(const RunOptions& options, const std::string& config_text, const Ranks& ranks,
           const StopRequest& stop, Spawner* spawner = nullptr);

  // What each rank will hold.
  const MemoryPlan& memory_plan() const override { return plan_; }

  // All that can be known before anything is allocated or written: whether the weights are there
  // and are this model's, whether the memory plans fit their hosts, what the run begins with,
  // whether planner and metrics can go on from there, and whether a run that begins afresh
  // without being told to has lost its checkpoints. Throws Error. Collective over the world.
  RunStart examine(const ResumePoint& from, CheckpointCheck check) const override;

  // What a run with that start would find otherwise than its checkpoint's run had it, has lost and
  // would remove, into the log of rank 0. run() says the same of the start that it makes. Not
  // collective.
  void report_start(const RunStart& start) const override;
  std::string outlook(const RunStart& start) const override {
    return taper::outlook(start, options_.training.iterations);
  }

  // Examines, allocates, loads and runs the iterations that are left after `from`. A run that
  // starts from the checkpoint of another one counts on from there, as its data and random numbers
  // do, and saves that state as its own first checkpoint: from then on it needs the other run no
  // more.
  //
  // A stop request is honoured before, during and after generation and before the update; what the
  // unfinished iteration has done is dropped, and the state after the one before is saved: resuming
  // repeats it, with the same bits. From the update on the iteration is finished first.
  // kDone or kStoppedEarly. Collective over the world.
  ExitCode run(const ResumePoint& from) override;

 private:
  // What is otherwise than in the run of a checkpoint: run file and layout, into the log.
  void report_differences(const StateInfo& state) const;
  void create();
  void warn_of_repeated_prompts() const;
  // What rewards and scores are of, into the log.
  void announce() const;
  std::string memory_advice() const;
  std::int64_t restore(const ResumePoint& from);
  ExitCode run_iterations();
  void report_completed() const;
  void save_checkpoint(std::int64_t iteration, const std::function<void()>& record);
  IterationEnd iterate(std::int64_t iteration);
  // The stages of an iteration, each collective over the world.
  void add_reference(Batch& batch, PhaseTimer& timer);
  void add_values(Batch& batch, PhaseTimer& timer);
  ExperienceReport add_advantages(Batch& batch, PhaseTimer& timer);
  MetricValues learn(std::int64_t iteration, Batch& batch, PhaseTimer& timer);
  // Makes the iteration count: what the next one starts from. Its figures.
  MetricValues advance(std::int64_t iteration, const Batch& batch,
                       const ExperienceReport& experience);
  void record(std::int64_t iteration, const Batch& batch, const MetricValues& learned,
              MetricValues& metrics, PhaseTimer& timer);
  void stop_early();
  // The held-out figures of the weights as they are; nothing where a stop request came.
  std::optional<MetricValues> evaluate();
  // Keeps the weights of the last iteration where they are the best so far, and says so in
  // best.json.
  void note_evaluation(const MetricValues& figures);
  // What best.json tells about the iterations so far. Throws Error where it is broken. Collective.
  EvaluationHistory load_history() const;
  // Evaluates the weights behind the last iteration, unless the results have that already. False
  // where a stop request came: the job that goes on will do it.
  bool evaluate_at_the_end();
  void write_rollout_file(std::int64_t iteration, const Batch& batch);
  ScoreContext score_context(const ModelView& view);

  RunOptions options_;
  std::string config_text_;
  const Ranks& ranks_;
  StopAgreement stop_;
  StatusFile status_;
  bool same_command_goes_on_ = true;       // after a stop
  std::int64_t finished_ = 0, saved_ = 0;  // iterations; the last one in a checkpoint
  ModelFiles files_;
  Evaluation evaluation_;
  EvaluationHistory history_;            // of the figure by which weights are the best
  std::optional<MetricValues> figures_;  // of the weights behind the last iteration
  Generator generator_;
  Judge judge_;
  Rollouts rollouts_;
  std::string learned_;              // the planner after the last finished iteration
  double kl_coef_;                   // of the KL in the reward, after the last finished iteration
  std::int64_t prompt_batches_ = 0;  // drawn by the finished iterations, Rollout/Prompts each
  TrainingModel model_;
  std::unique_ptr<InferenceModel> reference_;
  std::unique_ptr<Critic> critic_;  // where the estimator needs one
  TrainPassOptions pass_options_;
  MemoryPlan plan_;
  CheckpointStore checkpoints_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<PolicyTrainer> trainer_;
  std::unique_ptr<IterationLog> log_;
  double publish_seconds_ = 0.0;  // of the current iteration, on this rank
};

}  // namespace taper
