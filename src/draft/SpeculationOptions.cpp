// SPDX-License-Identifier: Apache-2.0
#include "draft/SpeculationOptions.hpp"

namespace taper {

std::vector<std::pair<std::string, SpeculationMode>> named_speculation_modes() {
  return {{"off", SpeculationMode::kOff},
          {"auto", SpeculationMode::kAuto},
          {"fixed", SpeculationMode::kFixed}};
}

std::vector<std::pair<std::string, DraftPlacement>> named_draft_placements() {
  return {{"sequence", DraftPlacement::kSequence},
          {"tensor", DraftPlacement::kTensor},
          {"layer", DraftPlacement::kLayer}};
}

}  // namespace taper
