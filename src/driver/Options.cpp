// SPDX-License-Identifier: Apache-2.0
#include "driver/Options.hpp"

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "text/Tasks.hpp"

namespace taper {

std::vector<std::pair<std::string, RewardRule>> named_reward_rules() {
  return {{"task", RewardRule::kTask},
          {"exact", RewardRule::kExact},
          {"gsm8k-strict", RewardRule::kGsm8kStrict},
          {"gsm8k-flexible", RewardRule::kGsm8kFlexible},
          {"boxed", RewardRule::kBoxed}};
}

std::vector<std::string> ModelOptions::problems() const {
  if (directory.empty())
    return {"Model/Directory is not set (a Hugging Face directory is wanted, e.g. data/model); " +
            path_advice("")};
  return {};
}

std::vector<std::string> task_problems(const std::string& task) {
  try {
    TaskMix::from_name(task);
  } catch (const Error& error) {
    return {std::string("Data/Task: ") + error.what()};
  }
  return {};
}

std::vector<std::string> DataOptions::problems() const {
  std::vector<std::string> list = task_problems(task);
  if (!prompts.empty() && rule == RewardRule::kTask)
    list.push_back(
        "Data/Prompts needs Data/Reward Rule (exact, gsm8k-strict, gsm8k-flexible or boxed)");
  if (prompts.empty() && rule != RewardRule::kTask)
    list.push_back(
        "Data/Reward Rule is not task, but there are no Data/Prompts (answers to in-tree tasks fit "
        "no other rule); name a prompt file, or leave the rule at task");
  return list;
}

std::vector<std::string> RolloutOptions::problems() const {
  std::vector<std::string> list;
  if (step_rows < max_running)
    list.push_back("Rollout/Step Rows is " + std::to_string(step_rows) +
                   " and Rollout/Max Running " + std::to_string(max_running) +
                   " (each sequence in flight has a row in a step); raise the one or lower the "
                   "other");
  if (mode != PolicyMode::kStatic && profile.empty())
    list.push_back(
        "Rollout/Mode needs Rollout/Profile (made by taper profile) unless it is static");
  return list;
}

std::vector<std::string> RunOptions::problems() const {
  std::vector<std::string> list;
  if (training.mini_batches > rollout.prompts)
    list.push_back("Training/Mini Batches is " + std::to_string(training.mini_batches) +
                   " and Rollout/Prompts " + std::to_string(rollout.prompts) +
                   " (the samples of a prompt stay in one mini-batch); lower the one or raise the "
                   "other");
  if (evaluation.every > 0 && !data.prompts.empty() && data.evaluation_prompts.empty())
    list.push_back("Evaluation/Every is " + std::to_string(evaluation.every) +
                   ", but Data/Evaluation Prompts is not set (evaluations need held-out prompts "
                   "beside Data/Prompts); set it, or Evaluation/Every to 0");
  return list;
}

std::vector<std::string> SftOptions::problems() const {
  std::vector<std::string> list;
  if (epochs > 0 && data.files.empty())
    list.push_back("Training/Epochs is " + std::to_string(epochs) +
                   ", but there are no Data/Files (in-tree tasks have no end); name files, or set "
                   "Training/Steps and leave Training/Epochs at 0");
  if (validate_every > 0 && data.validation_files.empty())
    list.push_back("Validation/Every is " + std::to_string(validate_every) +
                   ", but there are no Data/Validation Files; name some, or set Validation/Every "
                   "to 0");
  return list;
}

std::string SftOptions::run_path() const {
  return run_directory.empty() ? without_end_slash(output).string() + ".run" : run_directory;
}

}  // namespace taper
