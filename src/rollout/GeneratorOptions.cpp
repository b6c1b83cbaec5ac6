// SPDX-License-Identifier: Apache-2.0
#include "rollout/GeneratorOptions.hpp"

#include <utility>

namespace taper {

StopOptions GeneratorOptions::stops(const ModelFiles& files) const {
  StopOptions stops{files.config.eos_ids, stop_strings, {}};
  if (!stop_strings.empty())
    for (int id = 0; id < files.valid_ids(); ++id)
      stops.token_bytes.push_back(files.tokenizer().token_bytes(id));
  return stops;
}

std::vector<std::string> GeneratorOptions::problems() const {
  std::vector<std::string> list = layout_problems();
  for (std::string& problem : speculation_problems()) list.push_back(std::move(problem));
  return list;
}

std::vector<std::string> GeneratorOptions::layout_problems() const {
  std::vector<std::string> list;
  if (may_change_layout() && profile.empty())
    list.push_back(std::string(names.mode) + " needs " + names.profile +
                   " (made by taper profile) unless it is static");
  return list;
}

std::vector<std::string> GeneratorOptions::speculation_problems() const {
  std::vector<std::string> list;
  const auto is_idle = [&](const std::string& directory, const char* name) {
    if (!directory.empty() && !speculation.is_on())
      list.push_back(std::string(name) + " is " + directory + ", but " + names.speculation +
                     " is off; set that to auto, or leave the directory out");
  };
  is_idle(speculation.draft_model, names.draft_model);
  is_idle(speculation.early_exits, names.early_exits);
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
