// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/TrainPass.hpp"
#include "optim/Schedule.hpp"
#include "optim/ShardedAdamW.hpp"
#include "rl/DraftTrainer.hpp"

namespace taper {

// The head of an early exit that learns: a model without layers, whole on every rank. What it
// refers to must outlive it.
struct ExitTarget {
  int layers = 0;  // of the policy that come before it
  const ModelView& view;
  const ModelParallel& parallel;  // of this rank alone
  const Gradients& gradients;
  ShardedAdamW& optimizer;
  std::function<void()> publish;  // as in UpdateTarget
};

struct ExitTrainerOptions {
  ScheduleOptions schedule;
  // Optimizer steps over a collection, of mini-batches of about 256 of its rows on a rank in turn;
  // 0: four for each mini-batch.
  int steps = 1;
  float temperature = 1.0f;  // that the tokens are drawn at
  int capacity = 1024;       // rows of a collection on a rank, at most
};

// Trains early exits to say what the policy says behind its last layer, from the streams of forward
// passes that are made anyway (AdaDecode, arXiv 2506.03700, section 3.1). The tokens that follow
// were drawn from the policy: their cross entropy has the gradient of the divergence from the
// policy's distribution, in expectation. Tokens that the heads do not know are passed over.
class ExitTrainer {
 public:
  // Floats of memory of this rank for so many exits with heads like this one.
  static std::int64_t floats(const ParamTable& head, const ModelParallel& parallel, int exits,
                             int capacity);

  // `ids`, ascending, are what the rows of the heads stand for. world: all ranks, which learn
  // together. Works in `memory`.
  ExitTrainer(const Exec& exec, const ExitTrainerOptions& options, std::vector<ExitTarget> exits,
              std::span<const std::int32_t> ids, const Group& world, float* memory);

  // Begins a collection. Of the rows that it will be shown, about `tokens` for each rank, it takes
  // every so many if they are more than there is room for.
  void begin(std::int64_t tokens);
  // Keeps streams of the last forward pass, of rows that have targets. The ranks of `group`, which
  // is that of the pass, share the rows out. Not collective.
  void collect(const TrainPass& pass, const PackedSamples& packed, const Group& group);
  // Whether it takes no more, the same on all ranks of the group.
  bool is_full() const { return seen_ >= stride_ * options_.capacity * sharing_; }
  // Learns from what has been collected; loss and norm are means over exits and steps. Collective
  // over the world.
  DraftReport learn();

 private:
  double learn_step(std::size_t exit, std::span<const int> rows, std::int64_t total);
  // Of some rows collected, (rows, h).
  FloatMatrix streams(std::size_t exit, std::size_t first, std::size_t rows) const;

  const Exec& exec_;
  ExitTrainerOptions options_;
  std::vector<ExitTarget> exits_;
  std::span<const std::int32_t> ids_;
  const Group& world_;
  float* streams_;
  std::vector<TokenHead> heads_;
  std::vector<std::int32_t> targets_;  // of the rows collected, as rows of the heads
  // Of the rows with a target that the heads know, so many have been seen, every stride-th is taken
  // by one of so many ranks.
  std::int64_t seen_ = 0, stride_ = 1, sharing_ = 1;
};

}  // namespace taper
