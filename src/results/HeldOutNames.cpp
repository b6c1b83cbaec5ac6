// SPDX-License-Identifier: Apache-2.0
#include "results/HeldOutNames.hpp"

#include <algorithm>

namespace taper {
namespace {

constexpr const char* kPlainFinal = "val/score/final";
constexpr const char* kValidation = "val/";
constexpr const char* kFinal = "/final/";
constexpr const char* kFinalRewards = "val/final/reward";

// What stands behind the last slash of a figure's name: "avg@4".
std::string figure_of(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

// The names of rewards' figures.
bool is_of_rewards(const std::string& name) {
  return name.starts_with(std::string(kHeldOutRewards) + "/") ||
         name.starts_with(std::string(kFinalRewards) + "/");
}

}  // namespace

std::string final_name(const std::string& name) {
  if (name == kPlainHeldOutScore) return kPlainFinal;
  if (is_of_rewards(name)) return kFinalRewards + name.substr(std::string(kHeldOutRewards).size());
  const auto slash = name.rfind('/');
  return name.substr(0, slash) + kFinal + name.substr(slash + 1);
}

bool is_final_name(const std::string& name) {
  return name == kPlainFinal ||
         (name.starts_with(kValidation) && name.find(kFinal) != std::string::npos);
}

std::string held_out_meaning(const std::string& name) {
  // Names without a set are those of fine-tuning ("val/loss").
  if (!name.starts_with(kValidation) || std::count(name.begin(), name.end(), '/') < 2 ||
      name.starts_with("val/score/") || is_of_rewards(name))
    return "";
  const std::string figure = figure_of(name);
  const std::string when =
      is_final_name(name) ? ", after the last iteration of the run" : ", before the update";
  if (figure.starts_with("avg@")) return "mean score of a held-out set" + when;
  if (figure.starts_with("pass@"))
    return "estimated share of held-out prompts with a right response among that many" + when;
  if (figure.starts_with("maj@"))
    return "share of held-out prompts whose most frequent answer is right" + when;
  return "mean length of the responses to a held-out set" + when;
}

}  // namespace taper
