// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "draft/SpeculationOptions.hpp"
#include "engine/EngineSizing.hpp"
#include "engine/SamplingOptions.hpp"
#include "engine/StopMatcher.hpp"
#include "instance/ModelFiles.hpp"
#include "planner/Planner.hpp"

namespace taper {

// What errors call these options: keys of a run file, or options of a command.
struct GeneratorNames {
  const char* layout = "Rollout/Layout";
  const char* kv_memory = "Rollout/KV Memory MB";
  const char* mode = "Rollout/Mode";
  const char* profile = "Rollout/Profile";
  const char* speculation = "Speculation/Mode";
  const char* draft_model = "Speculation/Draft Model";
  const char* draft_placement = "Speculation/Draft Placement";
  const char* early_exits = "Speculation/Early Exits";
};

// How responses are generated: sampling, lengths, layouts and memory.
struct GeneratorOptions : EngineSizing {
  int samples = 1;  // per prompt
  int max_prompt_tokens = 128;
  int max_new_tokens = 256;
  SamplingOptions sampling;
  std::vector<std::string> stop_strings;
  int tp = 1;  // of the static layout; the smallest degree if the layout changes
  PlannerMode mode = PlannerMode::kStatic;
  std::string profile;  // of `taper profile`; needed unless static
  std::string layout;   // at the start, "2x4" or "4+2+2"; empty: tp, or chosen by the planner
  SpeculationOptions speculation;
  GeneratorNames names;

  bool may_change_layout() const { return mode != PlannerMode::kStatic; }
  // Of a prompt with its response.
  int max_positions() const { return max_prompt_tokens + max_new_tokens; }
  // When responses end: the model's end-of-sequence ids and the stop strings, with the bytes of all
  // tokens if there are strings. Throws Error if strings need a tokenizer that the model lacks.
  StopOptions stops(const ModelFiles& files) const;
  std::vector<std::string> problems() const;
  // Of which those of layouts, and those of speculation.
  std::vector<std::string> layout_problems() const;
  std::vector<std::string> speculation_problems() const;
};

// The modes by their names in run files and commands.
std::vector<std::pair<std::string, PlannerMode>> named_planner_modes();

}  // namespace taper
