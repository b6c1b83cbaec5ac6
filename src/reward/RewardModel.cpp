// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardModel.hpp"

#include <cmath>

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
  return {setup.max_rows, kMostSequences, setup.phase, precision(exec)};
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
                         const ModelPlace& place, const RewardModelSetup& setup)
    : files_(open_model(reward)),
      place_(place),
      setup_(setup),
      name_("reward model " + reward.name) {
  files_.require_tokenizer("it is compared with that of the policy");
  require_same_tokenizer(policy, files_, ranks, option_of(reward),
                         "train a reward model on a model of the policy's family, or judge by a "
                         "command");
  files_.require_context(setup_.max_positions, "the length limits of prompts or responses");
  if (place.ranks != nullptr)
    model_ = std::make_unique<InferenceModel>(name_, files_, *place.ranks, place.layout.grid.tp);
}

void RewardModel::add_memory(MemoryPlan& plan) const {
  if (!model_) return;
  model_->add_memory(plan, setup_.type);
  ValuePass::add_memory(plan, name_, files_.table, model_->parallel(),
                        pass_options(setup_, place_.ranks->exec));
}

void RewardModel::create(Arena& arena) {
  if (!model_) return;
  const Exec& exec = place_.ranks->exec;
  model_->load(setup_.type, arena);
  pass_ = std::make_unique<ValuePass>(name_, files_.table, model_->parallel(),
                                      pass_options(setup_, exec), arena,
                                      files_.rope_table(setup_.max_positions));
}

void RewardModel::score(SampleSet& samples, std::size_t component) {
  share_out(samples, place_.layout.grid, [component](const SampleSummary& s) {
    return std::isnan(s.rewards[component]) ? s.length() : 1;  // the others are only spread
  });
  score(samples.here(), component);
}

void RewardModel::score(std::vector<Sample>& samples, std::size_t component) {
  std::vector<Sample*> missing;
  std::vector<int> lengths;
  for (Sample& s : samples)
    if (std::isnan(s.rewards[component])) {
      missing.push_back(&s);
      lengths.push_back(s.length());
    }
  for (const auto& members : cut_micro_batches(lengths, setup_.max_rows, kMostSequences)) {
    PackedEnds packed;
    for (const int i : members) packed.add(missing[i]->prompt, missing[i]->response);
    std::vector<float> rewards(members.size());
    pass_->values(place_.ranks->exec, model_->view(), model_->parallel(), packed.sequences,
                  packed.rows, rewards);
    for (std::size_t k = 0; k < members.size(); ++k)
      missing[members[k]]->rewards[component] = rewards[k];
  }
}

}  // namespace taper
