// SPDX-License-Identifier: Apache-2.0
#include "rollout/RolloutOptions.hpp"

#include "base/Text.hpp"

namespace taper {

std::vector<std::string> RolloutOptions::problems() const {
  std::vector<std::string> list;
  if (step_rows < max_running)
    list.push_back("Rollout/Step Rows is " + std::to_string(step_rows) +
                   " and Rollout/Max Running " + std::to_string(max_running) +
                   " (each sequence in flight has a row in a step); raise the one or lower the "
                   "other");
  if (mode != PlannerMode::kStatic && profile.empty())
    list.push_back(
        "Rollout/Mode needs Rollout/Profile (made by taper profile) unless it is static");
  return list;
}

}  // namespace taper
