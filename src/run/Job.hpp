// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/Error.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "results/RunDirectory.hpp"
#include "run/CheckpointSchedule.hpp"
#include "run/EvaluationHistory.hpp"
#include "run/IterationLog.hpp"
#include "run/ResumePoint.hpp"
#include "run/RunStart.hpp"
#include "run/StatusFile.hpp"
#include "session/StopRequest.hpp"

namespace taper {

// How an iteration ended, or a step of fine-tuning.
enum class IterationEnd {
  kFinished,
  kStopped,     // by a stop request, before the weights changed: it will be repeated
  kNoProgress,  // before anything was done: the patience of the evaluations is over
};

// What a job is told of its run.
struct RunSetup {
  RunDirectory directory;
  std::string config;  // the parameters in use, for the results
  std::uint64_t seed = 1;
  RankGrid grid = {};     // of training
  bool is_exact = false;  // whether the layout of training changes no bit
  std::string unit;       // what the run calls an iteration, for log lines: "iteration", "step"
  CheckpointSchedule checkpoints;
  int keep = 2;  // newest checkpoints
  BestOptions best;
  int evaluate_every = 0;       // iterations; 0: never
  double status_seconds = 0.0;  // at least, between two updates of status.json
  // Rollouts of iterations that will come again go into the journal instead of being removed.
  bool journal = false;
};

// A job that trains a model iteration by iteration, writes a run directory and goes on from its
// checkpoints. The life of such a job is here, from the look at what is there to the report of its
// end; subclasses define an iteration.
class Job {
 public:
  virtual ~Job() = default;

  // What this rank will hold. Not collective.
  virtual const MemoryPlan& memory_plan() const = 0;

  // All that can be known before anything is allocated or written: whether the memory plans fit
  // their hosts, whether the inputs are there, what the run begins with, whether state and metrics
  // can be gone on from, and whether a run that begins afresh without being told to has lost its
  // checkpoints. Throws Error. Collective over the world.
  RunStart examine(const ResumePoint& from, CheckpointCheck check) const;

  // Logs on rank 0 what differs from the run that wrote the checkpoint, which results are lost, and
  // what a run with that start would remove. run() logs the same of the start that it makes. Not
  // collective.
  void report_start(const RunStart& start) const;
  // What a run with that start would do, as people read it: "would resume after step 3 (...)". Not
  // collective.
  std::string start_text(const RunStart& start) const;

  // Examines again, allocates, loads, and runs what is left after `from`, by default all with the
  // weights of the model directory. A run that starts from the checkpoint of another one counts on
  // from there, as its data and random numbers do, and saves that state as its own first
  // checkpoint: from then on it needs the other run no more.
  //
  // A stop request is honored between iterations, and where iterate() does: the state after the
  // last finished one is saved, and resuming has the bits of a run that was never stopped. kDone or
  // kStoppedEarly. Collective over the world.
  ExitCode run(const ResumePoint& from = {});

 protected:
  // Refers to the ranks. stop: may be null, then nothing stops the job.
  Job(RunSetup setup, const Ranks& ranks, const StopRequest* stop);

  // What is trained, and what else is part of the checkpoints. Not collective.
  virtual const ModelFiles& files() const = 0;
  virtual TrainingModel* trained_model() = 0;  // null if other ranks train it
  virtual std::vector<CheckpointPart> parts() { return {}; }

  // How a run that begins afresh starts, after "would start". Not collective.
  virtual std::string beginning() const { return "afresh"; }
  // The options that lower the need of memory. Not collective.
  virtual std::string memory_advice() const = 0;
  // Throws Error if something that a run with that start reads is missing. All ranks look. Not
  // collective.
  virtual void require_inputs(const RunStart& start) const = 0;
  // Throws Error if the job cannot go on with the state of that checkpoint, which is of its model
  // and seed. Not collective: on rank 0 only.
  virtual void require_state(const std::filesystem::path& checkpoint,
                             const StateInfo& state) const = 0;

  // Allocates. Collective over the world.
  virtual void create() = 0;
  // Makes the weights of a run that begins afresh. Collective over the world.
  virtual void load_start() = 0;
  // Takes in the state of a checkpoint, besides weights and moments. `place`: it, or the folder it
  // is in, for errors. It need not be the one that require_state() saw. Collective over the world.
  virtual void set_state(const StateInfo& state, const std::filesystem::path& place) = 0;
  // Adds what set_state() needs, on all ranks. Not collective.
  virtual void add_state(StateInfo& state) const = 0;

  // Iterations of the whole run, as known where the job stands: before anything is loaded (rank 0
  // asks, alone), and when all is. Not collective.
  virtual std::int64_t planned_iterations() const = 0;
  // The evaluations of earlier jobs, by default those of best.json. Not collective: on rank 0 only.
  virtual EvaluationHistory recorded_history() const;

  // Comes before the first iteration of the job. Collective over the world.
  virtual void begin() {}
  // Makes one iteration with its results and, if it is_checkpoint_due(), its checkpoint. Collective
  // over the world.
  virtual IterationEnd iterate(std::int64_t iteration) = 0;
  // Comes after the last iteration. kFinished or kStopped. Collective over the world.
  virtual IterationEnd finish() = 0;
  // Logs that the run is completed. Not collective: on rank 0 only.
  virtual void report_completed() const = 0;

  const RunSetup& setup() const { return setup_; }
  const Ranks& ranks() const { return ranks_; }
  StopAgreement& stop() { return stop_; }
  // Null but on rank 0, and before the first iteration.
  IterationLog* log() const { return log_.get(); }
  const EvaluationHistory& history() const { return history_; }
  std::int64_t done() const { return done_; }    // finished iterations of the run
  std::int64_t total() const { return total_; }  // iterations of the whole run

  bool is_checkpoint_due(std::int64_t iteration) const;
  // Ends an iteration: `record` writes what is still missing of it in the results. With a
  // checkpoint it does so before the checkpoint is there, because a resumed run does not repeat the
  // iterations up to it. Collective over the world.
  void conclude(std::int64_t iteration, bool with_checkpoint, const std::function<void()>& record);
  // Saves the state after the last finished iteration, unless a checkpoint has it. Collective over
  // the world.
  void save_unsaved();

  // Notes the held-out figure of the weights after an iteration. Whether they are the best so far.
  // Not collective, but done by all ranks.
  bool note_evaluation(std::int64_t iteration, const MetricValues& figures);
  // Keeps the checkpoint of the best weights, which is there already, and says in best.json which
  // it is. Not collective, but done by all ranks.
  void keep_best();

 private:
  // The parts of a run, each collective over the world.
  void save_checkpoint(std::int64_t iteration, const std::function<void()>& record = {});
  void start(const ResumePoint& from);
  void restore(const ResumePoint& from);
  EvaluationHistory read_history() const;
  // What of it counts for a run of `total` iterations that stands after `done` of them. Not
  // collective.
  EvaluationHistory counting(EvaluationHistory history, std::int64_t done,
                             std::int64_t total) const;
  IterationEnd run_iterations();
  void stop_early();
  // Logs what is otherwise than in the run of a checkpoint: run file and layout. As the others
  // below, not collective.
  void report_differences(const StateInfo& state) const;
  void warn_of_lost_metrics() const;
  // Removes what an unfinished iteration or another start has left, and opens the results. On rank
  // 0 only.
  void open_results(bool goes_on);
  void complete();

  RunSetup setup_;
  const Ranks& ranks_;
  StopAgreement stop_;
  CheckpointStore checkpoints_;
  StatusFile status_;
  EvaluationHistory history_;
  std::unique_ptr<IterationLog> log_;
  bool same_command_goes_on_ = true;               // after a stop
  std::int64_t done_ = 0, saved_ = 0, total_ = 0;  // saved: the iteration of the last checkpoint
};

}  // namespace taper
