// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "param/Schema.hpp"
#include "planner/DraftTable.hpp"
#include "simulate/LengthLaw.hpp"
#include "simulate/OneSwitch.hpp"
#include "simulate/Roofline.hpp"

namespace taper {

// Drafts, as many as pay: of so many sequences there is one, and a guess after right ones is right
// with this probability.
struct DraftDescription {
  double coverage = 0, acceptance = 0;

  DraftTable table() const;
};

// The generations of a described machine.
struct GenerationDescription {
  int prompts_per_rank = 16;
  int samples = 8;  // of a prompt
  int prompt_tokens = 200;
  int max_new_tokens = 16384;
  TailLaw lengths;
  int max_running = 256;  // per rank, if memory holds as many
  double share = 0;       // of the iteration, in the best static layout; 0: as Training describes
  DraftDescription drafts;
};

// What an iteration does beside its generation; all models have the shape of the policy.
struct TrainingDescription {
  bool reference = true, critic = false;
  int reward_models = 0;
  int mini_batches = 1, epochs = 1;
  int micro_batch = 16384;  // tokens
};

// How they are played.
struct PlayDescription {
  std::vector<int> degrees;  // empty: all that are possible
  int seeds = 2;
  int warm_up = 2;       // generations that the planners learn from first
  int iterations = 3;    // that count, per seed
  int oracle_grid = 16;  // points in time of the oracle; 0: left out
  std::uint64_t seed = 0;
};

// What was published for such a case; 0: nothing.
struct PublishedFigures {
  double speed_up = 0;           // of the iteration
  double generation_saved = 0;   // share
  double tokens_per_second = 0;  // of a rank, over the iteration, in the best static layout
};

// `taper simulate`: the planner on a described machine.
struct SimulateOptions {
  MachineDescription machine;
  ModelDescription model;
  GenerationDescription generation;
  TrainingDescription training;
  SwitchDescription switching;
  PublishedSwitch one_switch;
  PlayDescription play;
  PublishedFigures published;

  std::vector<std::string> problems() const;
};

// Describes its run file.
void describe(param::Section& schema, SimulateOptions& options);

}  // namespace taper
