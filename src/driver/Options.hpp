// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "driver/EvaluationHistory.hpp"
#include "driver/TrainingModel.hpp"
#include "optim/Schedule.hpp"
#include "predict/Policy.hpp"
#include "reward/RewardOptions.hpp"
#include "rl/DynamicSampling.hpp"
#include "rl/Experience.hpp"
#include "rl/PolicyLoss.hpp"

namespace taper {

struct ModelOptions {
  std::string directory;
  WeightType type = WeightType::kBf16;

  std::vector<std::string> problems() const;
};

// Whether there is an in-tree task of that name, which `key` has.
std::vector<std::string> task_problems(const std::string& task,
                                       const std::string& key = "Data/Task");

// What errors call the options that name data: keys of a run file, or options of a command.
struct DataNames {
  const char* prompts = "Data/Prompts";
  const char* evaluation_prompts = "Data/Evaluation Prompts";
};

struct DataOptions {
  std::string task = "mix";          // in-tree task, used where there is no prompt file
  std::vector<std::string> prompts;  // JSONL
  std::vector<double> weights;       // shares of the files in training; none: each prompt alike
  std::string
      evaluation_prompts;  // JSONL, held out; needed for evaluations where there is a prompt file
  std::string chat_template = "auto";  // family, ChatTemplate.hpp
  // What errors advise where all prompts of a file are too long.
  std::string too_long_advice = "raise Rollout/Max Prompt Tokens";
  RewardRule rule = RewardRule::kTask;
  DataNames names;

  std::vector<std::string> problems() const;
};

// Beyond any machine, and within the range of the counts that follow from them; the memory plan
// says what a machine holds.
inline constexpr int kMostRunning = 1 << 20;
inline constexpr int kMostStepRows = 1 << 22;
inline constexpr double kMostKvMemoryMb = 1e9;

// Likewise, of the options of generation.
struct RolloutNames {
  const char* layout = "Rollout/Layout";
  const char* kv_memory = "Rollout/KV Memory MB";
  const char* profile = "Rollout/Profile";
};

struct RolloutOptions {
  int prompts = 16;  // per iteration
  int samples = 8;   // per prompt
  int max_prompt_tokens = 128;
  int max_new_tokens = 1024;
  float temperature = 1.0f, top_p = 1.0f, min_p = 0.0f;
  int top_k = 0;
  float repetition_penalty = 1.0f;  // refused: here so that a run file that has it is told why
  std::vector<std::string> stop_strings;
  std::string lengths;  // of PinnedLengths; empty: the model ends its responses
  int tp = 1;           // of the static layout; the smallest degree where the layout changes
  PolicyMode mode = PolicyMode::kStatic;
  std::string profile;   // of `taper profile`; needed unless static
  std::string layout;    // at the start, "2x4" or "4+2+2"; empty: tp, or chosen by the policy
  int max_running = 64;  // per replica of the smallest degree
  int step_rows = 256;
  double kv_memory_mb = 1024.0;  // at most; less where less is needed
  RolloutNames names;

  std::vector<std::string> problems() const;
};

// Of forward and backward passes.
struct PassOptions {
  int tp = 1;
  int max_tokens = 2048;  // per micro-batch
  bool checkpointing = false;
};

struct TrainingOptions : PassOptions {
  std::int64_t iterations = 45;
  int mini_batches = 2;
  int epochs = 1;
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

// A named set of held-out prompts.
struct EvaluationSetOptions {
  std::string file;                     // JSONL; empty: of an in-tree task
  std::string task;                     // empty: that of the training
  RewardRule rule = RewardRule::kTask;  // of a file; kTask: as in training
  int prompts = 0;                      // the first ones; 0: all of a file
  int samples = 1;
  float temperature = 0.0f, top_p = 1.0f, min_p = 0.0f, repetition_penalty = 1.0f;
  int top_k = 0;
  int max_new_tokens = 0;  // 0: as in training
};

struct EvaluationOptions {
  int every = 0;     // iterations; 0: never
  int prompts = 64;  // of the plain set, where none is named
  float temperature = 0.0f;
  std::map<std::string, EvaluationSetOptions> sets;
  BestOptions best;

  bool is_on() const { return every > 0; }
};

struct CheckpointOptions {
  int every = 10;  // iterations; 0: only at the end
  int keep = 2;
};

// Everything `taper train` reads from its run file.
struct RunOptions {
  std::uint64_t seed = 1;
  double hang_seconds = 600.0;
  double deadline_margin = 120.0;  // seconds
  ModelOptions model;
  DataOptions data;
  std::deque<RewardOptions> rewards;  // stay where they are when more are added
  RolloutOptions rollout;
  std::string preset;      // that the run file names; the other options have it (Preset.hpp)
  PolicyLossOptions loss;  // its KL follows from `experience`, see loss_in_use()
  ExperienceOptions experience;
  DynamicSamplingOptions dynamic;
  TrainingOptions training;
  AdamWOptions adamw;
  ScheduleOptions schedule;
  CriticOptions critic;  // unused where has_critic() is false
  EvaluationOptions evaluation;
  CheckpointOptions checkpoint;
  std::string output = "taper-run";

  // Of settings that are fine each, but not together.
  std::vector<std::string> problems() const;
  // The loss with its KL, and with its constant length, which is Rollout/Max New Tokens where it is
  // not set.
  PolicyLossOptions loss_in_use() const;
  bool has_critic() const { return experience.advantage.needs_values(); }
  // Of forward and backward passes. The run's sequences must fit the model's context.
  TrainPassOptions pass_options() const;
  // The critic with what it has from the policy where it has none of its own.
  CriticOptions critic_in_use() const;
  // What responses are judged by: the rewards, or the rule of the data under the name "score".
  std::vector<RewardOptions> judged_by() const;
  // Of a prompt and its response.
  std::int64_t max_positions() const {
    return std::int64_t{rollout.max_prompt_tokens} + rollout.max_new_tokens;
  }
};

// Which of the assistant's messages in a chat are learned.
enum class SftAnswers { kAll, kLast };
// What becomes of an example that is longer than a micro-batch or the context.
enum class OverLong { kDrop, kCut, kStop };

// Examples of users, and how they are learned.
struct SftDataOptions {
  std::vector<std::string> files;             // JSONL; none: the in-tree task
  std::vector<std::string> validation_files;  // JSONL, held out
  std::string chat_template = "auto";         // family, ChatTemplate.hpp
  SftAnswers answers = SftAnswers::kAll;
  bool shuffle = true;  // each pass in an order of its own; else as in the files
  OverLong over_long = OverLong::kDrop;
  int max_length = 0;  // tokens of an example; 0: what a micro-batch and the context hold
};

// What training on given examples has in common, whatever is learned of them.
struct TuningOptions {
  std::uint64_t seed = 1;
  double hang_seconds = 600.0;
  double deadline_margin = 120.0;  // seconds
  ModelOptions model;              // directory: tokenizer and, for further training, weights
  std::int64_t steps = 1000;
  int epochs = 0;          // passes over the files, instead of steps; 0: by steps
  int validate_every = 0;  // steps; 0: never
  PassOptions training;
  AdamWOptions adamw;
  ScheduleOptions schedule;
  std::string best_by;  // held-out figure by which the best checkpoint is kept; empty: none is
  CheckpointOptions checkpoint{0, 2};  // every so many steps; 0: only where the run is stopped
  std::string output;                  // the model
  std::string run_directory;           // all else; empty: `output` with ".run" at its end

  std::string run_path() const;
};

struct SftOptions : TuningOptions {
  bool from_scratch = false;  // start from random weights of the directory's config.json
  std::string task = "mix";   // in-tree, used where there are no files
  double direct_fraction = 0.5, slip_rate = 0.015;
  SftDataOptions data;
  int batch_tokens = 8192;  // per optimizer step, over all ranks

  SftOptions() { output = "taper-sft"; }
  // Of settings that are fine each, but not together.
  std::vector<std::string> problems() const;
};

// Pairs of responses of which one was preferred.
struct PreferenceDataOptions {
  std::vector<std::string> files, validation_files;  // JSONL; the latter held out
  std::string chat_template = "auto";                // family, ChatTemplate.hpp
  bool shuffle = true;                               // as SftDataOptions
  OverLong over_long = OverLong::kDrop;              // never kCut: the end of a response counts
  int max_length = 0;  // tokens of a prompt with a response; 0: what the context holds
};

struct RewardModelOptions : TuningOptions {
  PreferenceDataOptions data;
  int batch_pairs = 64;         // per optimizer step, over all ranks
  double center_rewards = 0.0;  // factor of (chosen + rejected)^2 in the loss

  RewardModelOptions() {
    output = "taper-reward-model";
    steps = 0;
    epochs = 1;
    schedule.peak = 1e-5;
  }
  std::vector<std::string> problems() const;
};

}  // namespace taper
