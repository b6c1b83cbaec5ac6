// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/DataOptions.hpp"
#include "instance/ModelOptions.hpp"
#include "optim/Schedule.hpp"
#include "optim/ShardedAdamW.hpp"
#include "placement/Placement.hpp"
#include "reward/RewardOptions.hpp"
#include "rl/DynamicSampling.hpp"
#include "rl/Experience.hpp"
#include "rl/PolicyLoss.hpp"
#include "rollout/RolloutOptions.hpp"
#include "run/EvaluationHistory.hpp"
#include "run/JobOptions.hpp"

namespace taper {

// What bounds the sequences of a run.
inline constexpr const char* kLengthLimits = "Rollout/Max Prompt Tokens or Rollout/Max New Tokens";

struct TrainingOptions : PassOptions {
  std::int64_t iterations = 45;
  int mini_batches = 2;
  int epochs = 1;
  bool shared_prompts = true;      // samples of a prompt in one micro-batch share it
  bool early_learning = false;     // learns from prompts while others are still generated
  bool early_scoring = false;      // models score responses then
  bool offload_reference = false;  // its weights are on the host while it does not score

  bool scores_early() const { return early_scoring || early_learning; }
};

// The critic of estimators that need one.
struct CriticOptions {
  std::string directory;             // of a language or a reward model; empty: that of the policy
  ScheduleOptions schedule;          // over its own optimizer steps
  int tp = 0;                        // ranks per replica; 0: as the policy in training
  int mini_batches = 0, epochs = 0;  // 0: as the policy
  std::int64_t warmup = 0;           // iterations of the run in which the policy does not learn yet
  double clip = 0.5;                 // of values; 0: off

  CriticOptions() { schedule.peak = 1e-5; }
};

enum class BalanceMode {
  kOff,
  kAdvise,  // says which ranks are slow
  kOn,      // and gives them less to train
};

struct BalanceOptions {
  BalanceMode mode = BalanceMode::kOff;
  double margin = 0.05;  // from the median: nearer ranks count as equally fast

  bool is_on() const { return mode != BalanceMode::kOff; }
};

// A named set of held-out prompts.
struct EvaluationSetOptions {
  std::string file;                     // JSONL; empty: of an in-tree task
  std::string task;                     // empty: that of the training
  RewardRule rule = RewardRule::kTask;  // of a file; kTask: as in training
  int prompts = 0;                      // the first ones; 0: all of a file
  int samples = 1;
  SamplingOptions sampling;  // greedy if it is not said; the random numbers come from the run
  int max_new_tokens = 0;    // 0: as in training

  EvaluationSetOptions() { sampling.temperature = 0.0f; }
};

struct EvaluationOptions {
  int every = 0;     // iterations; 0: never
  int prompts = 64;  // of the plain set, if none is named
  float temperature = 0.0f;
  std::map<std::string, EvaluationSetOptions> sets;
  BestOptions best;

  bool is_on() const { return every > 0; }
};

// Everything `taper train` reads from its run file.
struct RunOptions : JobOptions {
  ModelOptions model;
  DataOptions data;
  RewardRule rule = RewardRule::kTask;  // of responses, if there are no rewards
  std::deque<RewardOptions> rewards;    // stay where they are when more are added
  RolloutOptions rollout;
  PlacementOptions placement;
  BalanceOptions balance;
  std::string preset;      // that the run file names; the other options have it (Preset.hpp)
  PolicyLossOptions loss;  // its KL follows from `experience`, see loss_in_use()
  ExperienceOptions experience;
  DynamicSamplingOptions dynamic;
  TrainingOptions training;
  AdamWOptions adamw;
  ScheduleOptions schedule;
  CriticOptions critic;  // unused if has_critic() is false
  EvaluationOptions evaluation;
  CheckpointOptions checkpoint;
  std::string output = "taper-run";

  // Of settings that are fine each, but not together.
  std::vector<std::string> problems() const;
  // The loss with its KL, and with its constant length, which is Rollout/Max New Tokens if it is
  // not set.
  PolicyLossOptions loss_in_use() const;
  bool has_reference() const { return experience.kl.coef > 0.0; }
  bool has_critic() const { return experience.advantage.needs_values(); }
  // Without speculation nobody drafts from it.
  bool has_journal() const { return rollout.speculation.is_on() && rollout.speculation.journal; }
  // Of forward and backward passes. The run's sequences must fit the model's context.
  TrainPassOptions pass_options() const;
  // The critic with what it has from the policy if it has none of its own.
  CriticOptions critic_in_use() const;
  // What responses are judged by: the rewards, or the rule of the data under the name "score".
  std::vector<RewardOptions> judged_by() const;
  // Ranks per replica of the policy in training.
  int policy_tp() const;
  // The models, for placing them.
  ModelSet models() const;
  // Of a prompt and its response, as kLengthLimits bound them.
  std::int64_t max_positions() const {
    return std::int64_t{rollout.max_prompt_tokens} + rollout.max_new_tokens;
  }
};

}  // namespace taper
