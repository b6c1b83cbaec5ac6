// SPDX-License-Identifier: Apache-2.0
#include "data/DataOptions.hpp"

#include <utility>

#include "base/Error.hpp"
#include "data/Order.hpp"
#include "data/Tasks.hpp"

namespace taper {

std::vector<std::string> task_problems(const std::string& task, const std::string& key) {
  try {
    TaskMix::from_name(task);
  } catch (const Error& error) {
    return {key + ": " + error.what()};
  }
  return {};
}

std::vector<std::string> DataOptions::problems() const {
  std::vector<std::string> list = task_problems(task);
  for (auto& problem : PromptMixture::problems("Data/Weights", prompts.size(), weights))
    list.push_back(std::move(problem));
  return list;
}

}  // namespace taper
