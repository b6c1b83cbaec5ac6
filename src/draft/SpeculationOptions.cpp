// SPDX-License-Identifier: Apache-2.0
#include "draft/SpeculationOptions.hpp"

namespace taper {

std::vector<std::pair<std::string, SpeculationMode>> named_speculation_modes() {
  return {{"off", SpeculationMode::kOff},
          {"auto", SpeculationMode::kAuto},
          {"fixed", SpeculationMode::kFixed}};
}

}  // namespace taper
