// SPDX-License-Identifier: Apache-2.0
#include "driver/Options.hpp"

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "text/Tasks.hpp"

namespace taper {
namespace {

// Of settings of the algorithm with each other and with the rollout.
std::vector<std::string> algorithm_problems(const RunOptions& o) {
  std::vector<std::string> list;
  const bool alone = o.rollout.samples < 2;
  if (alone && o.experience.advantage.compares_groups())
    list.push_back(
        "Rollout/Samples Per Prompt is 1 (the Algorithm/Estimator compares the samples of a "
        "prompt, "
        "so one is too few); raise it, or set the estimator to reinforce++");
  if (alone && o.dynamic.on)
    list.push_back(
        "Algorithm/Dynamic Sampling is on and Rollout/Samples Per Prompt is 1 (the scores of one "
        "sample cannot differ); raise it, or switch dynamic sampling off");
  const auto& correction = o.experience.correction;
  if (o.loss.needs_sequences() && (correction.weights == ImportanceLevel::kToken ||
                                   correction.rejection == RejectionLevel::kToken))
    list.push_back(
        "Algorithm/Importance Weights and Algorithm/Rejection must not be token where "
        "Algorithm/Policy Loss is gspo (its ratio is one of whole sequences); set them to "
        "sequence, "
        "geometric or none");
  return list;
}

}  // namespace

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
  return task_problems(task);
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

PolicyLossOptions RunOptions::loss_in_use() const {
  PolicyLossOptions used = loss;
  used.kl_coef = experience.kl.in_loss() ? experience.kl.coef : 0.0;
  used.kl = experience.kl.estimator;
  if (used.length_norm == 0.0) used.length_norm = rollout.max_new_tokens;
  return used;
}

namespace {

// Whether what responses are held against is there for them.
std::vector<std::string> truth_problems(const RunOptions& o) {
  std::vector<std::string> list;
  const bool file = !o.data.prompts.empty();
  if (o.rewards.empty()) {
    if (file && o.data.rule == RewardRule::kTask)
      list.push_back(
          "Data/Prompts needs Data/Reward Rule (exact, gsm8k-strict, gsm8k-flexible or boxed), or "
          "Rewards");
    if (!file && o.data.rule != RewardRule::kTask)
      list.push_back(
          "Data/Reward Rule is not task, but there are no Data/Prompts (answers to in-tree tasks "
          "fit no other rule); name a prompt file, or leave the rule at task");
    return list;
  }
  if (o.data.rule != RewardRule::kTask)
    list.push_back(
        "Data/Reward Rule and Rewards are both set (Rewards alone count); give the rule as a "
        "reward of that Kind");
  for (const RewardOptions& r : o.rewards)
    if (const auto rule = rule_of(r.kind); rule && file == (*rule == RewardRule::kTask))
      list.push_back("Rewards/" + r.name + "/Kind " +
                     (file ? "is task, which only in-tree tasks have (there are Data/Prompts)"
                           : "does not fit the in-tree tasks (their kind is task)"));
  return list;
}

std::vector<std::string> reward_problems(const RunOptions& o) {
  std::vector<std::string> list;
  for (const RewardOptions& r : o.rewards) {
    const int limit = r.overlong.limit > 0 ? r.overlong.limit : o.rollout.max_new_tokens;
    if (r.kind == RewardKind::kOverlong && r.overlong.buffer > limit)
      list.push_back("Rewards/" + r.name + "/Buffer is " + std::to_string(r.overlong.buffer) +
                     ", more than the limit of " + std::to_string(limit) +
                     " tokens (every response would be punished)");
  }
  return list;
}

}  // namespace

std::vector<RewardOptions> RunOptions::judged_by() const {
  std::vector<RewardOptions> list(rewards.begin(), rewards.end());
  if (list.empty()) {
    list.emplace_back().name = "score";
    list.back().kind = kind_of(data.rule);
  }
  for (RewardOptions& r : list)
    if (r.overlong.limit == 0) r.overlong.limit = rollout.max_new_tokens;
  return list;
}

std::vector<std::string> RunOptions::problems() const {
  std::vector<std::string> list = algorithm_problems(*this);
  for (const auto& more : {truth_problems(*this), reward_problems(*this)})
    list.insert(list.end(), more.begin(), more.end());
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

}  // namespace taper
