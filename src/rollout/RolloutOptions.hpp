// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rollout/GeneratorOptions.hpp"
#include "rounds/PromptRounds.hpp"

namespace taper {

// The rollouts of an iteration of training. Seed and iteration of the sampling come from the run.
struct RolloutOptions : GeneratorOptions {
  int prompts = 16;     // per iteration
  std::string lengths;  // of PinnedLengths; empty: the model ends its responses
  RoundOptions rounds;

  RolloutOptions() {
    samples = 8;
    max_new_tokens = 1024;
  }

  // Without those of speculation, which has a section of its own in run files.
  std::vector<std::string> problems() const;
};

}  // namespace taper
