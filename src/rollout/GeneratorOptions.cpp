// SPDX-License-Identifier: Apache-2.0
#include "rollout/GeneratorOptions.hpp"

namespace taper {

StopOptions GeneratorOptions::stops(const ModelFiles& files) const {
  StopOptions stops{files.config.eos_ids, stop_strings, {}};
  if (!stop_strings.empty())
    for (int id = 0; id < files.valid_ids(); ++id)
      stops.token_bytes.push_back(files.tokenizer().token_bytes(id));
  return stops;
}

std::vector<std::string> GeneratorOptions::problems() const {
  std::vector<std::string> list;
  if (may_change_layout() && profile.empty())
    list.push_back(std::string(names.mode) + " needs " + names.profile +
                   " (made by taper profile) unless it is static");
  if (!speculation.draft_model.empty() && !speculation.is_on())
    list.push_back(std::string(names.draft_model) +
                   " is named, but speculation is off; set it to auto, or name no model");
  if (!speculation.early_exits.empty() && !speculation.is_on())
    list.push_back(std::string(names.early_exits) +
                   " is named, but speculation is off; set it to auto, or name no exits");
  if (!speculation.early_exits.empty() && !speculation.draft_model.empty())
    list.push_back(std::string(names.draft_model) + " and " + names.early_exits +
                   " are both named (one of them drafts what texts do not say); name one");
  if (speculation.train_steps > 0 && speculation.draft_model.empty() &&
      speculation.early_exits.empty())
    list.push_back(std::string("Speculation/Train Steps is ") +
                   std::to_string(speculation.train_steps) + ", but neither " + names.draft_model +
                   " nor " + names.early_exits + " is named; name one, or set the steps to 0");
  return list;
}

std::vector<std::pair<std::string, PlannerMode>> named_planner_modes() {
  return {{"static", PlannerMode::kStatic},
          {"advise", PlannerMode::kAdvise},
          {"adaptive", PlannerMode::kAdaptive}};
}

}  // namespace taper
