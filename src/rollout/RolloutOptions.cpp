// SPDX-License-Identifier: Apache-2.0
#include "rollout/RolloutOptions.hpp"

#include <utility>

namespace taper {

std::vector<std::string> RolloutOptions::problems() const {
  std::vector<std::string> list = layout_problems();
  if (step_rows < max_running)
    list.insert(list.begin(),
                "Rollout/Step Rows is " + std::to_string(step_rows) + " and Rollout/Max Running " +
                    std::to_string(max_running) +
                    " (each sequence in flight has a row in a step); raise the one or lower the "
                    "other");
  if (rounds.is_priced() && profile.empty())
    list.push_back(
        "Rollout/Tail Prompts is 0 (chosen by price) and Rollout/Profile is not set (prices come "
        "from it); measure one with taper profile, or set Tail Prompts to 1 to 8");
  for (std::string& problem : rounds.problems()) list.push_back(std::move(problem));
  if (rounds.mode == RoundMode::kTail && rounds.samples > 1.0 && samples == 1)
    list.push_back(
        "Rollout/Tail Samples is above 1 and Rollout/Samples Per Prompt is 1 (of each prompt only "
        "the shortest response would ever be trained); set Tail Samples to 1");
  return list;
}

}  // namespace taper
