// SPDX-License-Identifier: Apache-2.0
#include "results/MetricTable.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "results/HeldOutNames.hpp"

namespace taper {
namespace {

using Table = std::vector<MetricMeaning>;

// Mean, largest and smallest over the samples of an iteration.
void add_statistics(Table& table, const std::string& name, const std::string& units,
                    const std::string& description) {
  for (const auto& [suffix, word] :
       {std::pair("mean", "mean"), std::pair("max", "largest"), std::pair("min", "smallest")})
    table.push_back({name + "/" + suffix, units, std::string(word) + " " + description});
}

void add_all(Table& table, const Table& more) {
  table.insert(table.end(), more.begin(), more.end());
}

Table make_phase_table() {
  return {{"testing", "s", "evaluation"},
          {"gen", "s", "generation"},
          {"reward", "s", "rewards, and collecting the samples"},
          {"ref", "s", "log-probs of the reference model"},
          {"values", "s", "values by the critic"},
          {"adv", "s", "advantages"},
          {"reward_model", "s", "reward models, if models are on different ranks; else in reward"},
          {"wait", "s", "for models on other ranks, and bringing what they have found"},
          {"update_critic", "s", "forward, backward and optimizer of the critic"},
          {"update_actor", "s", "forward, backward and optimizer"},
          {"update_draft", "s",
           "forward, backward and optimizer of the draft model; optimizer of the early exits"},
          {"output", "s", "rollout file"},
          {"save_checkpoint", "s", "checkpoint"}};
}

const Table kRollout = {
    {kPlainHeldOutScore, "1", "mean score of held-out prompts, before the update of the iteration"},
    {kPlainFinalScore, "1", "mean score of held-out prompts after the last iteration of the run"},
    {"response_length/clip_ratio", "1", "share of responses that ended at the length limit"},
    {"train/num_gen_batches", "1", "generations of the iteration"},
    {"rollout/groups_dropped", "1",
     "prompts left out because all their samples have the same score"},
    {"rollout/groups_surplus", "1", "prompts left out because the iteration had enough"},
    {"rollout/groups_filled", "1", "prompts with equal scores that were used to fill the batch"},
    {"reward_adjustment/variance_before", "1",
     "variance of the scores of a group before the adjustment, mean over groups"},
    {"reward_adjustment/variance_after", "1", "the same after it"},
    {"reward_adjustment/winners", "1",
     "where the mean score of a group lies in the range of scores, mean over groups"},
    {"balance/speed_min", "1",
     "speed of the slowest rank in training against the median; balance/... with Balance/Mode"},
    {"balance/imbalance", "1",
     "share of the ranks' time in which they waited for the slowest one to train its samples"},
    {"rollout/truncated_masked", "1",
     "share of responses without a loss because they were truncated"},
    {"rollout/short_rounds", "1",
     "short rounds of tail batching; this and the next seven not with plain rounds"},
    {"rollout/long_rounds", "1", "long rounds"},
    {"rollout/started_responses", "1", "responses that the rounds have started"},
    {"rollout/kept_responses", "1", "of these, responses that they have kept"},
    {"rollout/aborted_responses", "1", "of these, responses that were given up on the way"},
    {"rollout/unkept_tokens", "token",
     "tokens of responses that were not kept, as far as they came"},
    {"rollout/longest_kept", "token", "length of the longest response that was kept"},
    {"rollout/waiting_prompts", "1", "prompts that wait for a long round after the iteration"},
    {"rollout/early_score_share", "1",
     "share of the figures of models, one per response and model, that were there when the "
     "generation ended"},
    {"rollout/preemptions", "1",
     "sequences preempted because the KV cache was full, and recomputed"}};

const Table kUpdate = {
    {"actor/entropy", "nat", "entropy of the policy per response token"},
    {"actor/pg_loss", "1", "policy loss"},
    {"actor/pg_clipfrac", "1", "share of tokens whose ratio is clipped"},
    {"actor/pg_clipfrac_lower", "1", "share of tokens bounded by the dual clip"},
    {"actor/ppo_kl", "nat", "mean of rollout minus current log-prob over response tokens"},
    {"actor/kl_loss", "nat", "KL to the reference model, in the loss"},
    {"actor/kl_coef", "1", "coefficient of the KL in the loss"},
    {"actor/reward_kl_penalty", "nat", "KL to the reference model, in the reward"},
    {"actor/reward_kl_penalty_coeff", "1", "coefficient of the KL in the reward"},
    {"actor/early_token_share", "1",
     "share of response tokens learned from while others were generated (Training/Early Learning)"},
    {"actor/grad_norm", "1", "norm of the gradient before clipping"},
    {"actor/lr", "1", "learning rate"},
    {"actor/skipped_steps", "1",
     "optimizer steps left out because the gradient was not finite or no token carried a loss"},
    {"training/rollout_probs_diff_max", "1",
     "largest difference of a probability between rollout and training"},
    {"training/rollout_log_probs_diff_max", "nat",
     "largest difference of a log-prob between rollout and training"}};

const Table kCritic = {
    {"critic/vf_loss", "1", "loss of the critic"},
    {"critic/vf_clipfrac", "1", "share of tokens whose clipped value has the larger loss"},
    {"critic/vpred_mean", "1", "mean value of a token during the updates of the critic"},
    {"critic/vf_explained_var", "1",
     "share of the variance of returns that the values of the rollout explain"},
    {"critic/grad_norm", "1", "norm of the critic's gradient before clipping"},
    {"critic/lr", "1", "learning rate of the critic"},
    {"critic/skipped_steps", "1",
     "optimizer steps of the critic left out because the gradient was not finite or no token "
     "carried a loss"}};

const Table kCorrection = {
    {"rollout_corr/kl", "nat", "KL (k1) of the sampling distribution to the trained one"},
    {"rollout_corr/k3_kl", "nat", "the same by the estimator k3"},
    {"rollout_corr/ppl_ratio", "1",
     "perplexity in training divided by that of the rollout, per response"},
    {"rollout_corr/chi2_token", "1", "mean squared ratio of probabilities minus 1, over tokens"},
    {"rollout_corr/chi2_seq", "1", "mean squared ratio of probabilities minus 1, over responses"},
    {"rollout_corr/log_ratio_abs_max", "nat", "largest absolute log-ratio of a token"},
    {"rollout_corr/rollout_is_mean", "1", "mean importance weight, over tokens"},
    {"rollout_corr/rollout_is_min", "1", "smallest importance weight"},
    {"rollout_corr/rollout_is_max", "1", "largest importance weight"},
    {"rollout_corr/rollout_is_eff_sample_size", "1", "effective share of the tokens"},
    {"rollout_corr/rollout_rs_masked_fraction", "1", "share of tokens that were rejected"},
    {"rollout_corr/rollout_rs_seq_masked_fraction", "1",
     "share of responses with a rejected token"}};

const Table kAdaptive = {
    {"adaptive/switches", "1", "changes of layout carried out in the iteration"},
    {"adaptive/advised", "1",
     "generations in which the planner would have changed the layout (Rollout/Mode advise)"},
    {"adaptive/switch_time_s", "s", "time of these changes on rank 0, meetings included"},
    {"adaptive/consultations", "1", "snapshots that rank 0 exchanged with the other leaders"},
    {"adaptive/consult_time_s", "s", "time of rank 0 for these and for choosing the first layout"},
    {"adaptive/kv_bytes_moved", "byte", "keys and values sent between ranks"},
    {"adaptive/positions_recomputed", "1", "positions recomputed instead of sent"},
    {"adaptive/extra_bytes", "byte",
     "largest memory beyond the plan that a change used on a rank"}};

const Table kSpeculation = {
    {"speculation/tokens_per_step", "token", "tokens that a sequence gets in a step of decoding"},
    {"speculation/drafted", "token", "tokens that were guessed"},
    {"speculation/accepted", "token", "guesses that were right, and so were kept"},
    {"speculation/acceptance", "1", "accepted / drafted; 0 if nothing was drafted"},
    {"speculation/train_loss", "nat",
     "mean cross entropy of the responses in the draft model, or in the early exits (of tokens "
     "that "
     "they know), before its steps; only with Speculation/Train Steps"},
    {"speculation/train_grad_norm", "1",
     "norm of the gradient of the draft model, or mean norm of those of the exits, before "
     "clipping"}};

const Table kSft = {
    {"train/loss", "nat",
     "mean cross entropy of what is learned, or mean loss of the preference pairs, before the "
     "step"},
    {"train/grad_norm", "1", "norm of the gradient before clipping"},
    {"train/lr", "1", "learning rate"},
    {"train/epoch", "1", "passes over the examples after the step"},
    {"train/examples", "1", "examples of the step"},
    {"train/target_tokens", "token", "tokens of the step that are learned"},
    {"train/skipped_steps", "1", "1 if the step was left out because the gradient was not finite"},
    {"val/loss", "nat",
     "mean cross entropy of held-out examples, or mean loss of held-out pairs, after the step"}};

// Of a reward model, before the step ("train") and after it ("val").
const Table kRewardModel = {
    {"train/pairs", "1", "preference pairs of the step"},
    {"train/accuracy", "1", "share of pairs whose chosen response has the larger reward"},
    {"train/margin", "1", "mean reward of chosen minus rejected responses"},
    {"train/reward_chosen", "1", "mean reward of chosen responses"},
    {"train/reward_rejected", "1", "mean reward of rejected responses"},
    {"val/accuracy", "1", "share of held-out pairs whose chosen response has the larger reward"},
    {"val/margin", "1", "mean reward of chosen minus rejected responses, held out"},
    {"val/reward_chosen", "1", "mean reward of chosen responses, held out"},
    {"val/reward_rejected", "1", "mean reward of rejected responses, held out"}};

const Table kPerformance = {
    {"perf/total_num_tokens", "token", "prompt and response tokens of the samples"},
    {"perf/time_per_step", "s", "time of the iteration on rank 0"},
    {"perf/throughput", "token/s", "prompt and response tokens per second and rank"},
    {"perf/max_memory_allocated_gb", "GiB", "largest resident memory of a rank so far"},
    {"perf/gpu_memory_gb", "GiB", "memory taken of the GPU of which most is"},
    {"timing_s/step", "s", "time of the iteration on rank 0"},
    {"timing_s/publish", "s",
     "sending the weights to the generation layout, a part of update_actor; rank 0"},
    {"timing_s/record", "s",
     "writing metrics.jsonl and run.h5 after the previous iteration; rank 0"}};

// Of each reward by its name, and of the figures in a command's answers ("judge/style").
const Table kReward = {
    {"reward/<name>/mean", "1", "mean of the reward over the responses that have it"},
    {"reward/<name>/max", "1", "largest of the reward"},
    {"reward/<name>/min", "1", "smallest of the reward"},
    {"reward/<name>/failed", "1", "responses without this reward after all attempts"},
    {"reward/<name>/errors", "1", "attempts that failed, without time-outs"},
    {"reward/<name>/timeouts", "1", "attempts without an answer in time"},
    {"reward/<name>/restarts", "1", "workers started as replacements"},
    {"reward/<name>/cut_short", "1",
     "attempts without an answer in the time that their prompt had by Adaptive Timeout"},
    {"reward/<name>/anchor_hits", "1",
     "prompts whose time followed from earlier answers, by Adaptive Timeout"},
    {"reward/<name>/latency_s/mean", "s", "mean time from request to answer"},
    {"reward/<name>/latency_s/max", "s", "longest time from request to answer"}};

// Whether a dataset is of a reward, of the iteration's responses or of held-out ones.
bool is_of_reward(const std::string& dataset) {
  constexpr std::string_view kMetrics = "/metrics/";
  if (!dataset.starts_with(kMetrics)) return false;
  const std::string name = dataset.substr(kMetrics.size());
  const auto held_out = parse_held_out_name(name);
  return name.starts_with("reward/") || (held_out && held_out->source == HeldOutSource::kRewards);
}

const MetricMeaning* meaning_of_reward(const std::string& dataset) {
  if (!is_of_reward(dataset)) return nullptr;
  const MetricMeaning* longest = nullptr;  // a latency ends as a mean does
  for (const MetricMeaning& m : kReward)
    if (dataset.ends_with(m.name.substr(m.name.find('>') + 1)) &&
        (longest == nullptr || m.name.size() > longest->name.size()))
      longest = &m;
  return longest;
}

Table make_metric_table() {
  Table table{{"training/global_step", "1", "the iteration"}};
  add_statistics(table, "critic/score", "1", "score of a response");
  add_statistics(table, "critic/rewards", "1",
                 "reward of a response from which its advantage is computed");
  add_statistics(table, "critic/values", "1", "value of a token, by the critic before its update");
  add_statistics(table, "critic/returns", "1", "return of a token");
  add_statistics(table, "critic/advantages", "1", "advantage of a token");
  add_statistics(table, "response_length", "token", "length of a response");
  add_statistics(table, "prompt_length", "token", "length of a prompt, over the samples");
  for (const Table* part : {&kRollout, &kReward, &kUpdate, &kCritic, &kCorrection, &kAdaptive,
                            &kSpeculation, &kSft, &kRewardModel, &kPerformance})
    add_all(table, *part);
  for (const MetricMeaning& phase : phase_table())
    table.push_back(
        {"timing_s/" + phase.name, phase.units, phase.description + ", on the slowest rank"});
  return table;
}

std::map<std::string, MetricMeaning> by_dataset() {
  std::map<std::string, MetricMeaning> datasets;
  for (const MetricMeaning& m : metric_table()) datasets["/metrics/" + m.name] = m;
  for (MetricMeaning m : phase_table()) {
    m.description += ": minimum, mean and maximum over ranks";
    datasets["/timing/" + m.name] = m;
  }
  return datasets;
}

}  // namespace

const std::vector<MetricMeaning>& metric_table() {
  static const Table table = make_metric_table();
  return table;
}

const std::vector<MetricMeaning>& phase_table() {
  static const Table table = make_phase_table();
  return table;
}

const MetricMeaning* meaning_of(const std::string& dataset) {
  static const auto datasets = by_dataset();
  const auto found = datasets.find(dataset);
  return found == datasets.end() ? meaning_of_reward(dataset) : &found->second;
}

}  // namespace taper
