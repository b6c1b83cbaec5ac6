// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "driver/Checkpoint.hpp"
#include "driver/IterationLog.hpp"
#include "driver/Options.hpp"
#include "driver/ResumePoint.hpp"
#include "driver/RunStart.hpp"
#include "driver/SftSource.hpp"
#include "driver/StatusFile.hpp"
#include "driver/StopRequest.hpp"
#include "driver/TrainingModel.hpp"

namespace taper {

// How a fine-tuning job is run, besides its options.
struct SftRun {
  std::string config = {};            // the parameters in use, for the results
  const StopRequest* stop = nullptr;  // none: nothing stops it
  ResumePoint from = {};              // default: from the model directory
};

// Supervised fine-tuning on examples of files or of in-tree tasks: token-mean cross entropy of what
// is to be said.
class SftJob {
 public:
  // Reads the model's configuration and tokenizer, and all examples. Throws Error where something
  // is missing or an example cannot be learned. Collective over the world.
  SftJob(const SftOptions& options, const Ranks& ranks);

  // What each rank will hold.
  const MemoryPlan& memory_plan() const { return plan_; }

  // All that can be known before anything is allocated or written: whether the weights to start
  // from are there and are this model's, whether the memory plans fit their hosts, and whether the
  // checkpoint to go on from is one of these examples. Throws Error. Collective over the world.
  RunStart examine(const ResumePoint& from, CheckpointCheck check) const;

  // Examines, allocates, loads or draws the weights, trains and saves the model. A stop request is
  // honoured between steps: the state is saved then, and a run from it has the bits of one that was
  // never stopped. kDone or kStoppedEarly. Collective over the world.
  ExitCode run(const SftRun& how = {});

 private:
  void start(const ResumePoint& from);
  void restore(const ResumePoint& from);
  void start_from_random();
  ExitCode train();
  // What one optimizer step is about: the loss of its batch, and what the optimizer said.
  MetricValues step(const std::vector<TokenExample>& batch);
  double accumulate(const std::vector<TokenExample>& batch);
  // Minus the mean log-prob of the held-out targets: the same in any layout.
  double validation_loss();
  bool validates_after(std::int64_t step) const;
  void record(const MetricValues& metrics);
  void print(const MetricValues& metrics, std::int64_t tokens, double seconds) const;
  void save_checkpoint(const MetricValues& metrics);
  void save_result();
  bool must_stop();
  void stop_early();

  SftOptions options_;
  const Ranks& ranks_;
  ModelFiles files_;
  TrainPassOptions pass_options_;
  TrainingModel model_;
  SftSource source_;
  MemoryPlan plan_;
  std::unique_ptr<Arena> arena_;
  CheckpointStore checkpoints_;
  std::string config_;
  const StopRequest* stop_ = nullptr;
  StopReason stop_reason_ = StopReason::kNone;  // agreed between all ranks
  std::unique_ptr<StatusFile> status_;          // on rank 0, like the log
  std::unique_ptr<IterationLog> log_;
  std::uint64_t next_ = 0;                          // position of the next example
  std::int64_t done_ = 0, saved_ = -1, steps_ = 0;  // of the run; saved: the step of a checkpoint
};

}  // namespace taper
