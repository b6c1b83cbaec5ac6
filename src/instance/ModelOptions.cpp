// SPDX-License-Identifier: Apache-2.0
#include "instance/ModelOptions.hpp"

#include <algorithm>

#include "base/Path.hpp"

namespace taper {

std::vector<std::string> ModelOptions::problems() const {
  std::vector<std::string> list;
  if (directory.empty())
    list.push_back(
        "Model/Directory is not set (a Hugging Face directory is expected, e.g. data/model); " +
        path_advice(""));
  if (const auto problem = arithmetic_problem("Model/Arithmetic", arithmetic, type);
      !problem.empty())
    list.push_back(problem);
  return list;
}

std::vector<std::pair<std::string, WeightType>> named_weight_types() {
  return {{"bf16", WeightType::kBf16}, {"f32", WeightType::kF32}};
}

std::vector<std::pair<std::string, Arithmetic>> named_arithmetics() {
  return {{"f32", Arithmetic::kF32}, {"bf16", Arithmetic::kBf16}};
}

std::string arithmetic_problem(const std::string& key, Arithmetic arithmetic, WeightType type) {
  if (arithmetic == Arithmetic::kF32) return "";
  if (type == WeightType::kF32)
    return key +
           " is bf16, but the forward weights are f32 (matrix units multiply bf16 values); "
           "set both to one type";
  return "";
}

TrainPassOptions PassOptions::train_pass(Arithmetic arithmetic) const {
  TrainPassOptions pass;
  pass.max_rows = max_tokens;
  pass.checkpointing = checkpointing ? Checkpointing::kYes : Checkpointing::kNo;
  pass.kv_type = kv_type(arithmetic);
  if (exactness == Exactness::kLayout) {
    constexpr int kBundleTokens = 1024;
    pass.bundle_tokens = bundle_tokens > 0 ? bundle_tokens : std::min(kBundleTokens, max_tokens);
    pass.gradients = GradientType::kFixed;
  }
  return pass;
}

std::vector<std::string> PassOptions::problems() const {
  if (exactness == Exactness::kRun || bundle_tokens <= max_tokens) return {};
  return {
      "Training/Bundle Tokens is " + std::to_string(bundle_tokens) +
      ", more than Training/Max Tokens (" + std::to_string(max_tokens) +
      "), but a bundle is trained in one micro-batch; lower it (other bundles give other bits), "
      "or raise Training/Max Tokens"};
}

}  // namespace taper
