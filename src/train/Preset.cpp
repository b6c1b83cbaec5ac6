// SPDX-License-Identifier: Apache-2.0
#include "train/Preset.hpp"

#include <algorithm>

#include "base/Text.hpp"
#include "param/Schema.hpp"

namespace taper {
namespace {

constexpr const char* kKey = "Algorithm/Preset";

std::string algorithm(const char* name) {
  return std::string("Algorithm/") + name;
}

// The parameters that every preset sets, so that none depends on defaults that may change.
Preset make(const char* name, const char* summary, const char* estimator, const char* loss,
            const char* aggregation, const char* low, const char* high, std::vector<Setting> more) {
  Preset preset{name,
                summary,
                {{algorithm("Estimator"), estimator},
                 {algorithm("Policy Loss"), loss},
                 {algorithm("Loss Aggregation"), aggregation},
                 {algorithm("Clip Low"), low},
                 {algorithm("Clip High"), high}}};
  preset.settings.insert(preset.settings.end(), more.begin(), more.end());
  return preset;
}

std::vector<Setting> kl(const char* place, const char* estimator, const char* coef) {
  return {{algorithm("KL In"), place},
          {algorithm("KL Estimator"), estimator},
          {algorithm("KL Coefficient"), coef}};
}

std::vector<Setting> no_kl() {
  return {{algorithm("KL Coefficient"), "0"}};
}

std::vector<Setting> operator+(std::vector<Setting> a, const std::vector<Setting>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Preset> make_presets() {
  return {
      make("grpo", "group-relative advantages, KL in the loss", "grpo", "ppo", "token-mean", "0.2",
           "0.2", kl("loss", "k3", "0.001")),
      make("dr-grpo", "GRPO without divisions by deviation and length", "dr-grpo", "ppo",
           "seq-mean-token-sum-norm", "0.2", "0.2", no_kl()),
      // DAPO's overlong punishment is one of the Rewards, which are the run file's alone: with one
      // from here, Data/Reward Rule would not count any more.
      make("dapo", "GRPO with a higher upper clip and dynamic sampling", "grpo", "ppo",
           "token-mean", "0.2", "0.28",
           no_kl() + std::vector<Setting>{{algorithm("Dual Clip"), "10"},
                                          {algorithm("Dynamic Sampling"), "true"},
                                          {algorithm("Max Rounds"), "10"}}),
      make("rloo", "leave-one-out baseline, KL in the reward", "rloo", "ppo", "token-mean", "0.2",
           "0.2", kl("reward", "k1", "0.001")),
      make("reinforce++", "whitened returns-to-go, KL in the reward", "reinforce++", "ppo",
           "token-mean", "0.2", "0.2", kl("reward", "k1", "0.01")),
      make("reinforce++-baseline", "group mean as baseline, whitened; KL in the loss",
           "reinforce++-baseline", "ppo", "token-mean", "0.2", "0.2", kl("loss", "k2", "0.001")),
      make("gspo", "ratios of whole sequences", "grpo", "gspo", "seq-mean-token-mean", "3e-4",
           "4e-4", no_kl()),
      make("ppo", "advantages by a critic, KL in the reward", "gae", "ppo", "token-mean", "0.2",
           "0.2",
           kl("reward", "k1", "0.01") + std::vector<Setting>{{algorithm("Gamma"), "1"},
                                                             {algorithm("Lambda"), "1"},
                                                             {"Critic/Value Clip", "0.5"}}),
      make("cispo", "clipped ratios as constant weights", "grpo", "cispo", "token-mean", "1", "0.2",
           no_kl()),
  };
}

std::string list_of(const std::vector<Setting>& settings) {
  std::vector<std::string> texts;
  for (const auto& [path, value] : settings) texts.push_back(path + " " + value);
  return join(texts, ", ");
}

// The value of a path in the file; empty if it has none.
std::string value_in(const param::ParamFile& file, const std::string& path) {
  for (const auto& [known, value] : file.values())
    if (known == path) return value;
  return "";
}

// The preset that the file names, read as the schema of a run reads it; empty without a valid one.
std::string preset_in(const param::ParamFile& file) {
  std::string name;
  param::Schema schema;
  schema.section("Algorithm").choice("Preset", name, "", named_presets());
  (void)schema.read_and_list_problems(file);  // of all else, which this schema does not know
  return name;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make_presets();
  return all;
}

std::vector<std::pair<std::string, std::string>> named_presets() {
  std::vector<std::pair<std::string, std::string>> names{{"none", ""}};
  for (const Preset& preset : presets()) names.emplace_back(preset.name, preset.name);
  return names;
}

AppliedPreset apply_preset(param::ParamFile& file) {
  const std::string wanted = preset_in(file);
  const auto preset = std::find_if(presets().begin(), presets().end(),
                                   [&](const Preset& p) { return p.name == wanted; });
  if (preset == presets().end()) return {};
  AppliedPreset applied{preset->name, {}, {}};
  for (const auto& [path, value] : preset->settings) {
    if (file.set_default(path, value, std::string(kKey) + " " + preset->name))
      applied.set.emplace_back(path, value);
    else
      applied.of_file.emplace_back(path, value_in(file, path));
  }
  return applied;
}

std::string AppliedPreset::summary() const {
  if (name.empty()) return "";
  std::string text = std::string(kKey) + " " + name + " sets ";
  text += set.empty() ? "nothing" : list_of(set);
  if (!of_file.empty()) text += "; the run file or --set has its own " + list_of(of_file);
  return text;
}

}  // namespace taper
