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

struct SpeculationOptions {
  SpeculationMode mode = SpeculationMode::kOff;
  int draft_length = 8;  // tokens of a draft, at most
  double index_mb = 64;  // memory of a rank for the responses of earlier generations, MiB

  bool is_on() const { return mode != SpeculationMode::kOff; }
};

// The modes by their names in run files and commands.
std::vector<std::pair<std::string, SpeculationMode>> named_speculation_modes();

}  // namespace taper
