// SPDX-License-Identifier: Apache-2.0
#include "driver/Options.hpp"

namespace taper {

std::vector<std::string> ModelOptions::problems() const {
  if (directory.empty())
    return {"Model/Directory is not set (a Hugging Face directory, e.g. data/model)"};
  return {};
}

std::vector<std::string> DataOptions::problems() const {
  if (!prompts.empty() && rule == RewardRule::kTask)
    return {"Data/Prompts needs Data/Reward Rule (exact, gsm8k-strict, gsm8k-flexible or boxed)"};
  return {};
}

std::vector<std::string> RolloutOptions::problems() const {
  std::vector<std::string> list;
  if (step_rows < max_running)
    list.push_back("Rollout/Step Rows must be at least Rollout/Max Running");
  if (mode != PolicyMode::kStatic && profile.empty())
    list.push_back(
        "Rollout/Mode needs Rollout/Profile (made by taper profile) unless it is static");
  if (temperature == 0.0f && samples > 1)
    list.push_back(
        "Rollout/Temperature 0 makes all samples of a prompt equal (set Samples Per Prompt to 1)");
  return list;
}

}  // namespace taper
