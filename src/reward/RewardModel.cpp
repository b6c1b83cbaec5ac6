// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardModel.hpp"

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "instance/SameTokenizer.hpp"
#include "rl/MicroBatch.hpp"

namespace taper {
namespace {

constexpr int kMostSequences = 256;  // of a micro-batch

std::string option_of(const RewardOptions& reward) {
  return "Rewards/" + reward.name + "/Directory";
}

ModelFiles open_model(const RewardOptions& reward) {
  const std::string option = option_of(reward);
  ModelFiles files(reward.model.directory, option, {OutputHead::kScalar, 0});
  TAPER_VALIDATE(!files.score_seed,
                 option << " " << path_text(files.directory)
                        << " is a language model according to its config.json (it computes no "
                           "reward); name a model made by taper reward-model, or another one for "
                           "sequence classification with one label");
  return files;
}

ValuePassOptions pass_options(const RewardModelSetup& setup, const Exec& exec) {
  return {setup.max_rows, kMostSequences, setup.phase, kv_type(exec.arithmetic)};
}

RewardModelSetup with_layout_of(const RewardOptions& reward, RewardModelSetup setup) {
  if (reward.model.tp > 0) setup.tp = reward.model.tp;
  return setup;
}

}  // namespace

NamedDegrees degrees_of_models(const std::vector<RewardOptions>& rewards) {
  NamedDegrees degrees;
  for (const RewardOptions& reward : rewards)
    if (reward.model.tp > 0)
      degrees.push_back({"Rewards/" + reward.name + "/Tensor Parallel", reward.model.tp});
  return degrees;
}

RewardModel::RewardModel(const RewardOptions& reward, const ModelFiles& policy, const Ranks& ranks,
                         const RewardModelSetup& setup)
    : files_(open_model(reward)),
      ranks_(ranks),
      setup_(with_layout_of(reward, setup)),
      name_("reward model " + reward.name),
      model_(name_, files_, ranks, setup_.tp),
      dp_group_(&ranks.groups.dp_group(setup_.tp)) {
  files_.require_tokenizer("it is compared with that of the policy");
  require_same_tokenizer(policy, files_, ranks, option_of(reward),
                         "train a reward model on a model of the policy's family, or judge by a "
                         "command");
  files_.require_context(setup_.max_positions, "the length limits of prompts or responses");
}

void RewardModel::add_memory(MemoryPlan& plan) const {
  model_.add_memory(plan, setup_.type);
  ValuePass::add_memory(plan, name_, files_.table, model_.parallel(),
                        pass_options(setup_, ranks_.exec));
}

void RewardModel::create(Arena& arena) {
  model_.load(ranks_.exec, setup_.type, arena);
  pass_ = std::make_unique<ValuePass>(name_, files_.table, model_.parallel(),
                                      pass_options(setup_, ranks_.exec), arena,
                                      files_.rope_table(setup_.max_positions));
}

std::vector<float> RewardModel::score(SampleSet& samples) {
  std::vector<int> lengths;
  for (const SampleSummary& s : samples.all()) lengths.push_back(s.length());
  samples.move_to({setup_.tp, dp_group_->size()}, assign_replicas(lengths, dp_group_->size()));
  const std::vector<Sample>& here = samples.here();
  std::vector<int> mine;
  for (const Sample& s : here) mine.push_back(s.length());
  std::vector<float> found(here.size());
  for (const auto& members : cut_micro_batches(mine, setup_.max_rows, kMostSequences)) {
    PackedEnds packed;
    for (const int i : members) packed.add(here[i].prompt, here[i].response);
    std::vector<float> rewards(members.size());
    pass_->values(ranks_.exec, model_.view(), model_.parallel(), packed.sequences, packed.rows,
                  rewards);
    for (std::size_t k = 0; k < members.size(); ++k) found[members[k]] = rewards[k];
  }
  return found;
}

}  // namespace taper
