// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace taper {

// Whether generation verifies drafts of several tokens per sequence and step.
enum class SpeculationMode {
  kOff,
  kAuto,  // guesses whose row pays
  kFixed  // all guesses, up to the draft length
};

// Where a draft model runs.
enum class DraftPlacement {
  kSequence,  // on each rank of a replica by itself, for a part of the sequences
  kTensor,    // tensor-parallel over the ranks of a replica
  kLayer      // windows of its layers over the ranks of a replica, approximately (EasySpec)
};

struct SpeculationOptions {
  SpeculationMode mode = SpeculationMode::kOff;
  int draft_length = 8;     // tokens of a draft, at most
  double index_mb = 64;     // memory of a rank for the responses of earlier generations, MiB
  std::string draft_model;  // directory of a model with the same tokens; empty: none
  DraftPlacement draft_placement = DraftPlacement::kSequence;
  std::string early_exits;  // directory of early exits of the policy; empty: none
  // Of the draft model or the exits after each training iteration; 0: they stay as they are.
  int train_steps = 0;
  double train_rate = 1e-4;  // learning rate of these
  bool journal = true;       // training drafts from what an interrupted iteration had generated

  bool is_on() const { return mode != SpeculationMode::kOff; }
  bool has_draft_model() const { return is_on() && !draft_model.empty(); }
  bool has_exits() const { return is_on() && !early_exits.empty(); }
  bool trains_draft() const { return (has_draft_model() || has_exits()) && train_steps > 0; }
};

// The modes and placements by their names in run files and commands.
std::vector<std::pair<std::string, SpeculationMode>> named_speculation_modes();
std::vector<std::pair<std::string, DraftPlacement>> named_draft_placements();

}  // namespace taper
