// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/EngineSizing.hpp"
#include "planner/Planner.hpp"

namespace taper {

// What errors call options of generation: keys of a run file, or options of a command.
struct RolloutNames {
  const char* layout = "Rollout/Layout";
  const char* kv_memory = "Rollout/KV Memory MB";
  const char* profile = "Rollout/Profile";
};

struct RolloutOptions : EngineSizing {
  int prompts = 16;  // per iteration
  int samples = 8;   // per prompt
  int max_prompt_tokens = 128;
  int max_new_tokens = 1024;
  float temperature = 1.0f, top_p = 1.0f, min_p = 0.0f;
  int top_k = 0;
  std::vector<std::string> stop_strings;
  std::string lengths;  // of PinnedLengths; empty: the model ends its responses
  int tp = 1;           // of the static layout; the smallest degree where the layout changes
  PlannerMode mode = PlannerMode::kStatic;
  std::string profile;  // of `taper profile`; needed unless static
  std::string layout;   // at the start, "2x4" or "4+2+2"; empty: tp, or chosen by the planner
  RolloutNames names;

  // Of a prompt with its response.
  int max_positions() const { return max_prompt_tokens + max_new_tokens; }
  std::vector<std::string> problems() const;
};

}  // namespace taper
