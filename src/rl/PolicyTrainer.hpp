// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "optim/Schedule.hpp"
#include "optim/ShardedAdamW.hpp"
#include "rl/MicroBatch.hpp"
#include "rl/PolicyLoss.hpp"
#include "rl/Rollout.hpp"
#include "rl/ScoreModel.hpp"

namespace taper {

struct PolicyTrainerOptions {
  PolicyLossOptions loss;
  ScheduleOptions schedule;
  int mini_batches = 1;  // optimizer steps per epoch over a rollout
  int epochs = 1;
};

// Figures of one iteration's update, the same on all ranks.
struct UpdateReport {
  double policy_loss = 0.0, kl = 0.0, entropy = 0.0, clip_fraction = 0.0, dual_clip_fraction = 0.0,
         ppo_kl = 0.0;
  double grad_norm = 0.0, learning_rate = 0.0;
  double log_prob_diff_max = 0.0;  // |rollout - training| log-prob before the first step; infinite
                                   // where one of them is no number
  double prob_diff_max = 0.0;      // the same of probabilities
  int steps = 0, skipped = 0;
  int empty = 0;  // mini-batches without a token that carries a loss: no step was made
};

// Updates the policy from samples with advantages. Tokens that carry no loss count nowhere, and
// samples without any are not even passed through the model.
class PolicyTrainer {
 public:
  // `publish` is called after each optimizer step and must refresh the packed weights from the
  // optimizer's masters.
  PolicyTrainer(const PolicyTrainerOptions& options, ScoreContext context, const Group& dp_group,
                const Gradients& gradients, ShardedAdamW& optimizer, std::function<void()> publish);

  // The samples that this rank trains, for work that only their trainer needs (reference
  // log-probs).
  std::vector<int> trained_here(const std::vector<Sample>& samples) const;

  // Epochs x mini-batches over the samples, which are the same on all ranks. Collective over the
  // training layout.
  UpdateReport update(const std::vector<Sample>& samples);

 private:
  // A response token and its weight in the aggregated loss.
  struct TokenRef {
    const Sample* sample;
    std::size_t index;
    double weight;
    double mean_log_ratio = 0.0;  // of the sequence, where the loss needs it
  };

  std::vector<int> share(const std::vector<Sample>& samples, std::span<const int> batch) const;
  void step(const std::vector<Sample>& samples, std::span<const int> batch, UpdateReport& report);
  LossSums accumulate(const std::vector<Sample>& samples, std::span<const int> mine,
                      const StepTotals& totals, UpdateReport& report);
  // Fills in mean_log_ratio: a head pass over the log-probs of the micro-batch, which holds whole
  // sequences. Collective over the tensor-parallel group.
  void set_sequence_ratios(const PackedSamples& packed, std::vector<TokenRef>& tokens);
  // Adds one token's loss to the sums and returns its slopes.
  TokenSlope add_token(const TokenRef& token, float log_prob, float entropy, LossSums& sums,
                       UpdateReport& report) const;

  PolicyTrainerOptions options_;
  ScoreContext context_;
  const Group* dp_group_;
  const Gradients* gradients_;
  ShardedAdamW* optimizer_;
  std::function<void()> publish_;
};

}  // namespace taper
