// SPDX-License-Identifier: Apache-2.0
#include "train/RunOptions.hpp"

#include <algorithm>
#include <filesystem>

#include "base/Text.hpp"
#include "results/HeldOutNames.hpp"
#include "train/Evaluation.hpp"

namespace taper {
namespace {

std::vector<std::string> sorted(const std::set<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// Whether what judges the run's responses can judge those to the prompts of a file.
bool judges_files(const RunOptions& run) {
  if (run.rewards.empty()) return run.rule != RewardRule::kTask;
  return std::none_of(run.rewards.begin(), run.rewards.end(),
                      [](const RewardOptions& r) { return r.kind == RewardKind::kTask; });
}

// Of a held-out set of a run.
void add_problems(const std::string& name, const EvaluationSetOptions& set, const RunOptions& run,
                  std::vector<std::string>& list) {
  const std::string at = "Evaluation/Sets/" + name;
  constexpr const char* kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  if (is_taken_set_name(name) || name.find_first_not_of(kLetters) != std::string::npos)
    list.push_back(at +
                   " has a name that cannot be part of a metric's (letters, digits, '-', '_' "
                   "and '.', and none of score, final and reward); choose another");
  if (!set.file.empty() && !set.task.empty())
    list.push_back(at + " has both Prompt File and Task (only one is allowed); remove one");
  if (set.file.empty() && set.prompts == 0)
    list.push_back(at + "/Prompts is 0 (an in-tree task has no end); set it");
  if (!set.file.empty() && set.rule == RewardRule::kTask && !judges_files(run))
    list.push_back(at +
                   " needs Reward Rule (exact, gsm8k-strict, gsm8k-flexible or boxed) for its "
                   "Prompt File");
  if (set.file.empty() && set.rule != RewardRule::kTask)
    list.push_back(at +
                   "/Reward Rule is not task, but there is no Prompt File; name a file, or leave "
                   "the rule at task");
  if (!set.task.empty())
    for (auto& problem : task_problems(set.task, at + "/Task")) list.push_back(std::move(problem));
  if (set.samples > 1 && set.sampling.temperature == 0.0f)
    list.push_back(at + "/Samples is " + std::to_string(set.samples) +
                   " and Temperature 0 (greedy samples of a prompt are all the same); set a "
                   "temperature above 0, or Samples to 1");
  if (set.max_new_tokens > run.rollout.max_new_tokens)
    list.push_back(at + "/Max New Tokens is " + std::to_string(set.max_new_tokens) +
                   " and Rollout/Max New Tokens " + std::to_string(run.rollout.max_new_tokens) +
                   " (memory is planned for the latter); lower the one or raise the other");
}

// Of settings of the algorithm with each other and with the rollout.
std::vector<std::string> algorithm_problems(const RunOptions& o) {
  std::vector<std::string> list;
  const bool alone = o.rollout.samples < 2;
  if (alone && o.experience.advantage.compares_groups())
    list.push_back(
        "Rollout/Samples Per Prompt is 1 (the Algorithm/Estimator compares the samples of a "
        "prompt, "
        "so one is too few); raise it, or set the estimator to reinforce++ or gae");
  if (o.experience.adjustment.is_on() && !o.experience.advantage.compares_groups())
    list.push_back(
        "Algorithm/Reward Adjustment is variance, but Algorithm/Estimator does not compare the "
        "samples of a prompt (there is no group whose variance could count); set the adjustment to "
        "none, or the estimator to grpo, dr-grpo, rloo or reinforce++-baseline");
  if (alone && o.dynamic.on)
    list.push_back(
        "Algorithm/Dynamic Sampling is on and Rollout/Samples Per Prompt is 1 (the scores of one "
        "sample cannot differ); raise it, or switch dynamic sampling off");
  const bool only_shapes =
      !o.rewards.empty() && std::all_of(o.rewards.begin(), o.rewards.end(),
                                        [](const RewardOptions& r) { return is_shaping(r.kind); });
  if (o.dynamic.on && only_shapes)
    list.push_back(
        "Algorithm/Dynamic Sampling is on and Rewards has only length, overlong and repetition "
        "(which it ignores, so no prompt would ever be trained); add a reward for the content of "
        "responses, or switch dynamic sampling off");
  const auto& correction = o.experience.correction;
  if (o.loss.needs_sequences() && (correction.weights == ImportanceLevel::kToken ||
                                   correction.rejection == RejectionLevel::kToken))
    list.push_back(
        "Algorithm/Importance Weights and Algorithm/Rejection must not be token if "
        "Algorithm/Policy Loss is gspo (which uses one ratio per sequence); set them to sequence, "
        "geometric or none");
  const KlOptions& kl = o.experience.kl;
  const double samples = static_cast<double>(o.rollout.prompts) * o.rollout.samples;
  if (kl.control == KlControl::kAdaptive && samples >= 5.0 * kl.horizon)
    list.push_back(format_text(
        "Algorithm/KL Horizon is %g and Rollout/Prompts x Rollout/Samples Per Prompt %.0f (from 5 "
        "horizons on, one iteration could bring the coefficient to zero or below); raise "
        "Algorithm/KL Horizon above %g",
        kl.horizon, samples, samples / 5.0));
  return list;
}

}  // namespace

PolicyLossOptions RunOptions::loss_in_use() const {
  PolicyLossOptions used = loss;
  used.kl_coef = experience.kl.in_loss() ? experience.kl.coef : 0.0;
  used.kl = experience.kl.estimator;
  if (used.length_norm == 0.0) used.length_norm = rollout.max_new_tokens;
  return used;
}

TrainPassOptions RunOptions::pass_options() const {
  TrainPassOptions pass = training.train_pass(model.precision());
  pass.max_rows = std::max(pass.max_rows, static_cast<int>(max_positions()));
  pass.shares_prefixes = training.shared_prompts;
  pass.bundles_of_prompts = training.early_learning;
  return pass;
}

CriticOptions RunOptions::critic_in_use() const {
  CriticOptions used = critic;
  if (used.directory.empty()) used.directory = model.directory;
  if (used.tp == 0 || !has_critic()) used.tp = policy_tp();
  if (used.mini_batches == 0) used.mini_batches = training.mini_batches;
  if (used.epochs == 0) used.epochs = training.epochs;
  return used;
}

namespace {

// Of settings of the critic with those of the policy.
std::vector<std::string> critic_problems(const RunOptions& o) {
  std::vector<std::string> list;
  if (!o.has_critic()) {
    if (!o.critic.directory.empty())
      list.push_back(
          "Critic/Model Directory is set, but Algorithm/Estimator has no critic (gae has one); set "
          "the estimator to gae, or leave the directory out");
    return list;
  }
  if (o.critic.mini_batches > o.rollout.prompts)
    list.push_back("Critic/Mini Batches is " + std::to_string(o.critic.mini_batches) +
                   " and Rollout/Prompts " + std::to_string(o.rollout.prompts) +
                   " (the samples of a prompt stay in one mini-batch); lower the one or raise the "
                   "other");
  return list;
}

// Why prompts cannot be learned from one by one.
std::vector<std::string> early_learning_problems(const RunOptions& o) {
  if (!o.training.early_learning) return {};
  std::vector<std::string> list;
  const auto refuse = [&](bool is_so, const std::string& what, const std::string& advice) {
    if (is_so)
      list.push_back("Training/Early Learning is on, but " + what + "; " + advice +
                     ", or switch Early Learning off");
  };
  const AdvantageOptions& advantage = o.experience.advantage;
  refuse(o.training.exactness != Exactness::kLayout,
         "Training/Exactness is not layout (the order of learning would change the result, by the "
         "clock)",
         "set it to layout");
  refuse(
      !advantage.compares_groups() ||
          advantage.normalization_used() == AdvantageNormalization::kBatch,
      "the advantages of Algorithm/Estimator and Advantage Normalization depend on all samples of "
      "the iteration (no prompt could be learned from before the last response)",
      "set them to grpo, dr-grpo or rloo, and to group or none");
  const RewardAdjustmentOptions& adjustment = o.experience.adjustment;
  refuse(adjustment.is_on() && adjustment.low == adjustment.high,
         "Algorithm/Reward Adjustment takes its range from all scores of the iteration",
         "set Reward Low and Reward High");
  refuse(o.experience.correction.is_on(),
         "Algorithm/Importance Weights or Rejection are set (they look at all samples of the "
         "iteration)",
         "set both to none");
  refuse(o.dynamic.on,
         "Algorithm/Dynamic Sampling is on (it chooses prompts when all responses are there)",
         "switch it off");
  refuse(!o.rollout.rounds.is_plain(),
         "Rollout/Rounds is not plain (it chooses prompts by their lengths)", "set it to plain");
  refuse(o.rollout.speculation.trains_draft(),
         "Speculation/Train Steps is above 0 (drafts learn in the order of the policy's "
         "micro-batches)",
         "set it to 0");
  for (const RewardOptions& r : o.rewards)
    refuse(r.kind == RewardKind::kCommand && r.command.on_error == OnError::kDrop &&
               o.training.mini_batches > 1,
           "Rewards/" + r.name +
               "/On Error is drop, with several mini-batches (a prompt of which all responses are "
               "dropped would move others to another mini-batch)",
           "set On Error to zero, or Training/Mini Batches to 1");
  return list;
}

// Whether what responses are held against is there for them.
std::vector<std::string> truth_problems(const RunOptions& o) {
  std::vector<std::string> list;
  const bool file = !o.data.prompts.empty();
  if (o.rewards.empty()) {
    if (file && o.rule == RewardRule::kTask)
      list.push_back(
          "Data/Prompts needs Data/Reward Rule (exact, gsm8k-strict, gsm8k-flexible or boxed), or "
          "Rewards");
    if (!file && o.rule != RewardRule::kTask)
      list.push_back(
          "Data/Reward Rule is not task, but there are no Data/Prompts (answers to in-tree tasks "
          "fit no other rule); name a prompt file, or leave the rule at task");
    return list;
  }
  if (o.rule != RewardRule::kTask)
    list.push_back(
        "Data/Reward Rule and Rewards are both set (only Rewards would count); give the rule as a "
        "reward of that Kind");
  for (const RewardOptions& r : o.rewards)
    if (const auto rule = rule_of(r.kind); rule && file == (*rule == RewardRule::kTask))
      list.push_back("Rewards/" + r.name + "/Kind " +
                     (file ? "is task, which only in-tree tasks have (there are Data/Prompts); "
                             "choose exact, gsm8k-strict, gsm8k-flexible or boxed"
                           : "does not fit the in-tree tasks (their kind is task); set Kind to "
                             "task"));
  return list;
}

std::vector<std::string> reward_problems(const RunOptions& o) {
  std::vector<std::string> list;
  for (const RewardOptions& r : o.rewards) {
    const int limit = r.overlong.limit > 0 ? r.overlong.limit : o.rollout.max_new_tokens;
    if (r.kind == RewardKind::kOverlong && r.overlong.buffer > limit)
      list.push_back("Rewards/" + r.name + "/Buffer is " + std::to_string(r.overlong.buffer) +
                     ", more than the limit of " + std::to_string(limit) +
                     " tokens (every response would be punished); lower it, or raise " +
                     (r.overlong.limit > 0 ? "Limit" : "Rollout/Max New Tokens"));
  }
  return list;
}

}  // namespace

std::vector<RewardOptions> RunOptions::judged_by() const {
  std::vector<RewardOptions> list(rewards.begin(), rewards.end());
  if (list.empty()) {
    list.emplace_back().name = "score";
    list.back().kind = kind_of(rule);
  }
  for (RewardOptions& r : list)
    if (r.overlong.limit == 0) r.overlong.limit = rollout.max_new_tokens;
  return list;
}

int RunOptions::policy_tp() const {
  const auto named = find_model_ranks(placement.policy);
  return named && named->grid ? named->grid->tp : training.tp;
}

ModelSet RunOptions::models() const {
  ModelSet models;
  models.policy_tp = policy_tp();
  models.generation_tp = rollout.layout.empty() ? rollout.tp : 1;  // else the layout says it
  models.critic_tp = critic_in_use().tp;
  models.has_critic = has_critic();
  if (has_reference())
    models.scoring.push_back(
        {"reference", "Placement/Reference", placement.reference, policy_tp()});
  for (const RewardOptions& r : judged_by())
    if (r.kind == RewardKind::kModel)
      models.scoring.push_back({"reward model " + r.name, "Rewards/" + r.name + "/Ranks",
                                r.model.ranks, r.model.tp > 0 ? r.model.tp : policy_tp()});
  return models;
}

namespace {

std::vector<std::string> placement_problems(const RunOptions& o) {
  std::vector<std::string> list = o.placement.problems();
  for (const RewardOptions& r : o.rewards)
    if (!r.model.ranks.empty() && !find_model_ranks(r.model.ranks))
      list.push_back("Rewards/" + r.name + "/Ranks is '" + r.model.ranks +
                     "' (expected: " + kModelRanksForm + ")");
  if (!o.placement.reference.empty() && !o.has_reference())
    list.push_back(
        "Placement/Reference is set, but there is no reference model (Algorithm/KL Coefficient is "
        "0); set a coefficient, or leave the ranks out");
  if (!o.placement.critic.empty() && !o.has_critic())
    list.push_back(
        "Placement/Critic is set, but Algorithm/Estimator has no critic (gae has one); set the "
        "estimator to gae, or leave the ranks out");
  const auto generation = find_model_ranks(o.placement.generation);
  if (generation && generation->grid && !o.rollout.layout.empty())
    list.push_back("Placement/Generation is " + o.placement.generation + " and Rollout/Layout " +
                   o.rollout.layout +
                   " (both say how the ranks form replicas); leave TPxDP out of the former");
  if (o.balance.mode == BalanceMode::kOn && o.training.exactness != Exactness::kLayout)
    list.push_back(
        "Balance/Mode is on and Training/Exactness is not layout (who trains what would change the "
        "result, by the clock); set Exactness to layout, or Mode to advise");
  if (o.balance.mode == BalanceMode::kOn && o.rollout.speculation.has_exits() &&
      o.rollout.speculation.trains_draft())
    list.push_back(
        "Balance/Mode is on and Speculation/Train Steps trains early exits (each rank collects "
        "what "
        "they learn from, so it would depend on the clock); set Mode to advise, or Train Steps to "
        "0");
  return list;
}

}  // namespace

std::vector<std::string> RunOptions::problems() const {
  std::vector<std::string> list = algorithm_problems(*this);
  for (const auto& more : {critic_problems(*this), truth_problems(*this), reward_problems(*this),
                           placement_problems(*this), early_learning_problems(*this)})
    list.insert(list.end(), more.begin(), more.end());
  if (training.offload_reference && training.scores_early())
    list.push_back(
        "Training/Offload Reference is on, and so is Early Scoring or Early Learning (the weights "
        "would be brought to the GPU for each of the few responses that are scored at a time); "
        "switch one of them off");
  if (training.offload_reference && !has_reference())
    list.push_back(
        "Training/Offload Reference is on, but there is no reference model (Algorithm/KL "
        "Coefficient is 0); set a coefficient, or switch it off");
  if (training.mini_batches > rollout.prompts)
    list.push_back("Training/Mini Batches is " + std::to_string(training.mini_batches) +
                   " and Rollout/Prompts " + std::to_string(rollout.prompts) +
                   " (the samples of a prompt stay in one mini-batch); lower the one or raise the "
                   "other");
  if (rollout.rounds.mode == RoundMode::kPredicted && data.prompts.empty())
    list.push_back(
        "Rollout/Rounds is predicted, but there are no Data/Prompts (in-tree tasks never repeat a "
        "prompt, so nothing can be predicted); name prompt files, or set Rollout/Rounds to tail");
  if (!rollout.lengths.empty() && std::filesystem::path(rollout.lengths).lexically_normal() ==
                                      std::filesystem::path(output).lexically_normal())
    list.push_back("Rollout/Lengths and Output/Directory are both " + output +
                   " (the run would overwrite the lengths that it reads); name another run");
  if (evaluation.every > 0 && evaluation.sets.empty() && !data.prompts.empty() &&
      data.evaluation_prompts.empty())
    list.push_back("Evaluation/Every is " + std::to_string(evaluation.every) +
                   ", but Data/Evaluation Prompts is not set (with Data/Prompts, evaluations need "
                   "held-out prompts); set it, name Evaluation/Sets, or set Evaluation/Every to 0");
  for (const auto& [name, set] : evaluation.sets) add_problems(name, set, *this, list);
  const BestOptions& best = evaluation.best;
  if (best.patience > 0 && best.metric.empty())
    list.push_back("Evaluation/Patience is " + std::to_string(best.patience) +
                   ", but Evaluation/Best By is not set (the metric that must improve); set it, or "
                   "set Evaluation/Patience to 0");
  if (!best.metric.empty() && !evaluation.is_on())
    list.push_back("Evaluation/Best By is " + best.metric +
                   ", but Evaluation/Every is 0 (nothing is evaluated); set it to the iterations "
                   "between evaluations");
  else if (!best.metric.empty() && !Evaluation::figures(evaluation).contains(best.metric))
    list.push_back("Evaluation/Best By is " + best.metric +
                   ", which no evaluation produces; the metrics are " +
                   join(sorted(Evaluation::figures(evaluation))));
  return list;
}

}  // namespace taper
