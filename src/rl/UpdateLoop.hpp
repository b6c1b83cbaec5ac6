// SPDX-License-Identifier: Apache-2.0
//
// What the updates of policy and critic have in common: mini-batches, the share of a replica,
// micro-batches, optimizer steps.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "optim/Schedule.hpp"
#include "optim/ShardedAdamW.hpp"
#include "rl/MicroBatch.hpp"
#include "rl/PolicyLoss.hpp"
#include "rl/SampleSet.hpp"
#include "rl/TeacherForcing.hpp"

namespace taper {

struct UpdateOptions {
  ScheduleOptions schedule;
  int mini_batches = 1;  // optimizer steps per epoch over a rollout
  int epochs = 1;
  // If bundles are learned early, before the totals of their step are known: what their losses are
  // divided by instead, in all steps. The step makes up for the rest.
  StepTotals stand_in = {};

  bool learns_early() const { return stand_in.tokens > 0; }
};

// What the optimizer did in an update, the same on all ranks.
struct OptimizerSteps {
  double grad_norm = 0.0;  // mean over the steps that were made
  double learning_rate = 0.0;
  int steps = 0, skipped = 0;
  int empty = 0;  // mini-batches without a token that carries a loss: no step was made
};

// A model that learns, in one layout. All that it refers to must outlive it.
struct UpdateTarget {
  PassContext context;
  const Group& dp_group;
  const Gradients& gradients;
  ShardedAdamW& optimizer;
  // Called after each optimizer step; must refresh the packed weights from the optimizer's masters.
  // Collective over the training layout.
  std::function<void()> publish;
  // Of this process, to tell work from waiting; null: nobody asks for the work.
  const Progress* progress = nullptr;
};

// What a rank has trained: rows that it passed through the model, and how long it worked at them,
// outside of collectives.
struct TrainedWork {
  double rows = 0.0, seconds = 0.0;
};

// Micro-batches as indices of samples, all of which have responses.
using MicroBatchList = std::vector<std::vector<int>>;
// Those of the samples `mine`, in order.
MicroBatchList list_micro_batches(const std::vector<Sample>& samples, std::span<const int> mine,
                                  const TrainPassOptions& options);
// Calls `visit` with each.
void for_each_micro_batch(const std::vector<Sample>& samples, const MicroBatchList& batches,
                          const TrainPassOptions& options,
                          const std::function<void(const MicroBatch&)>& visit);

// Epochs x mini-batches over the samples of an iteration. Tokens that carry no loss count nowhere,
// and samples without any are not even passed through the model.
class UpdateLoop {
 public:
  UpdateLoop(const UpdateOptions& options, const UpdateTarget& model)
      : options_(options), model_(model) {}

  const PassContext& context() const { return model_.context; }
  const Group& dp_group() const { return model_.dp_group; }
  const Gradients& gradients() const { return model_.gradients; }

  // From now on replicas get samples by their speeds; all ranks pass the same ones. No bit depends
  // on them if gradients are exact sums.
  void set_speeds(ReplicaSpeeds speeds) { speeds_ = std::move(speeds); }
  // Of this rank since it was asked last.
  TrainedWork take_work() { return std::exchange(work_, {}); }

  // Brings the samples to the ranks that train them or have done so. Collective over the ranks of
  // the samples, which are those of the training layout.
  void bring(SampleSet& samples) const;

  // The bundles of all samples of a prompt, in order of their ids.
  std::vector<Range> bundles_of(const std::vector<Sample>& prompt) const;
  // Learns from such a bundle before the other samples of the first mini-batch are there:
  // `accumulate` is to add its gradient to gradients(), as Accumulate does. The next run() leaves
  // these samples out of its first step, whichever replica has learned from them. Collective over
  // the tensor-parallel group.
  void learn_early(const std::vector<Sample>& prompt, Range bundle,
                   const std::function<void(const MicroBatchList& mine)>& accumulate);
  // Forgets what was learned early, if there is no run().
  void forget_early() { early_.clear(); }
  // What losses of a step with these totals are divided by.
  const StepTotals& divisors(const StepTotals& totals) const {
    return options_.learns_early() ? options_.stand_in : totals;
  }

  // Adds the gradient of a step's loss over `mine`, of samples.here() that all carry a loss, to
  // gradients(); `totals` are of all replicas. Returns what the gradient is still to be multiplied
  // by. Collective over the training layout.
  using Accumulate = std::function<double(const MicroBatchList& mine, const StepTotals& totals)>;

  // Brings the samples to the ranks that train them and makes an optimizer step for each
  // mini-batch; adds to `report`. Collective over the training layout.
  void run(SampleSet& samples, const Accumulate& accumulate, OptimizerSteps& report);

 private:
  // Of the samples of these rows that are here and not among `done`.
  MicroBatchList micro_batches(const SampleSet& samples, Range batch,
                               const std::set<ResponseId>& done) const;
  // One mini-batch: the samples of the rows `batch`, with those of `done`, whose gradients are
  // there already. Collective over the training layout.
  void step(const SampleSet& samples, Range batch, const std::set<ResponseId>& done,
            const Accumulate& accumulate, OptimizerSteps& report);

  // Does the work, and notes it as that of training these samples.
  void note_work(const MicroBatchList& mine, const std::vector<Sample>& samples,
                 const std::function<void()>& work);
  // Of these rows: the replica that has learned from a sample early; empty if none learns early.
  // Collective over the replicas.
  std::vector<int> early_replicas(const SampleSet& samples) const;

  UpdateOptions options_;
  UpdateTarget model_;
  ReplicaSpeeds speeds_;
  TrainedWork work_;
  std::set<ResponseId> early_;  // of samples that this replica has learned from, for the next run()
};

}  // namespace taper
