// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/DataOptions.hpp"
#include "instance/ModelOptions.hpp"
#include "optim/Schedule.hpp"
#include "optim/ShardedAdamW.hpp"
#include "run/JobOptions.hpp"

namespace taper {

// What training on given examples has in common, whatever is learned of them.
struct TuningOptions : JobOptions {
  ModelOptions model;  // directory: tokenizer and, for further training, weights
  std::int64_t steps = 1000;
  int epochs = 0;          // passes over the files, instead of steps; 0: by steps
  int validate_every = 0;  // steps; 0: never
  PassOptions training;
  AdamWOptions adamw;
  ScheduleOptions schedule;
  std::string best_by;  // held-out figure by which the best checkpoint is kept; empty: none is
  CheckpointOptions checkpoint{0, 2};  // every so many steps; 0: only if the run is stopped
  std::string output;                  // the model
  std::string run_directory;           // all else; empty: `output` with ".run" at its end

  std::string run_path() const;
  // Of places that the trained model would replace.
  std::vector<std::string> problems() const;
};

struct SftOptions : TuningOptions {
  bool from_scratch = false;  // start from random weights of the directory's config.json
  std::string task = "mix";   // in-tree, used if there are no files
  double direct_fraction = 0.5, slip_rate = 0.015;
  SftDataOptions data;
  int batch_tokens = 8192;  // per optimizer step, over all ranks

  SftOptions() { output = "taper-sft"; }
  // Of settings that are fine each, but not together.
  std::vector<std::string> problems() const;
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
