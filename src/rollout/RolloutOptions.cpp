// SPDX-License-Identifier: Apache-2.0
#include "rollout/RolloutOptions.hpp"

namespace taper {

std::vector<std::string> RolloutOptions::problems() const {
  std::vector<std::string> list = GeneratorOptions::problems();
  if (step_rows < max_running)
    list.insert(list.begin(),
                "Rollout/Step Rows is " + std::to_string(step_rows) + " and Rollout/Max Running " +
                    std::to_string(max_running) +
                    " (each sequence in flight has a row in a step); raise the one or lower the "
                    "other");
  return list;
}

}  // namespace taper
