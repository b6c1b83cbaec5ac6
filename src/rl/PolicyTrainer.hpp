// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "rl/MicroBatch.hpp"
#include "rl/PolicyLoss.hpp"
#include "rl/UpdateLoop.hpp"

namespace taper {

struct PolicyTrainerOptions {
  PolicyLossOptions loss;
  UpdateOptions update;
};

// Figures of one iteration's update, the same on all ranks; means over its optimizer steps.
struct UpdateReport : OptimizerSteps {
  double policy_loss = 0.0, kl = 0.0, entropy = 0.0, clip_fraction = 0.0, dual_clip_fraction = 0.0,
         ppo_kl = 0.0;
  // |rollout - training| log-prob before the first step; infinite if one of them is no number.
  double log_prob_diff_max = 0.0;
  double prob_diff_max = 0.0;  // the same of probabilities
};

// Updates the policy from samples with advantages. Tokens that carry no loss count nowhere, and
// samples without any are not even passed through the model.
class PolicyTrainer {
 public:
  PolicyTrainer(const PolicyTrainerOptions& options, const UpdateTarget& model)
      : loss_(options.loss), loop_(options.update, model) {}

  // Is shown each micro-batch when the model has just been passed over it, from now on; null:
  // nobody. For those who learn from streams of the policy.
  using Observer = std::function<void(const MicroBatch&)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  // Brings the samples to the ranks that train them, for work that only these need to do (reference
  // log-probs). Collective over the training layout.
  void bring(SampleSet& samples) const { loop_.bring(samples); }

  // Who gets how much, and what this rank has trained: UpdateLoop.hpp.
  void set_speeds(const ReplicaSpeeds& speeds) { loop_.set_speeds(speeds); }
  TrainedWork take_work() { return loop_.take_work(); }

  // Learns from a bundle before the other samples of the iteration are there (UpdateLoop.hpp); the
  // samples have advantages. Collective over the tensor-parallel group.
  std::vector<Range> bundles_of(const std::vector<Sample>& prompt) const {
    return loop_.bundles_of(prompt);
  }
  void learn_early(const std::vector<Sample>& prompt, Range bundle);
  // Forgets what was learned early, if there is no update().
  void forget_early();

  // Epochs x mini-batches over the samples, which it brings to the ranks that train them.
  // Collective over the training layout.
  UpdateReport update(SampleSet& samples);

 private:
  // A response token and its weight in the aggregated loss.
  struct TokenRef {
    const Sample* sample;
    LossSums* sums;  // of the sample
    std::size_t index;
    double weight;
    double mean_log_ratio = 0.0;  // of the sequence, if the loss needs it
  };

  // Adds the gradient of this replica's part of a step and returns the sums of each sample.
  // Collective over the tensor-parallel group.
  std::vector<LossSums> accumulate(const std::vector<Sample>& samples, const MicroBatchList& mine,
                                   const StepTotals& totals, UpdateReport& report);
  // Adds the figures of a step; the sums are of all replicas. Collective over the data-parallel
  // group.
  void add_figures(const LossSums& sums, UpdateReport& report) const;
  // Fills in mean_log_ratio: a head pass over the log-probs of the micro-batch, which holds whole
  // sequences. Collective over the tensor-parallel group.
  void set_sequence_ratios(const PackedSamples& packed, std::vector<TokenRef>& tokens);
  // Adds one token's loss to the sums and returns its slopes.
  TokenSlope add_token(const TokenRef& token, float log_prob, float entropy,
                       UpdateReport& report) const;

  PolicyLossOptions loss_;
  UpdateLoop loop_;
  // Of what was learned early on this replica.
  std::map<ResponseId, LossSums> early_sums_;
  UpdateReport early_report_;
  Observer observer_;
};

}  // namespace taper
