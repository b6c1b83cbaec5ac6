// SPDX-License-Identifier: Apache-2.0
#include "instance/ModelOptions.hpp"

#include <algorithm>
#include <utility>

namespace taper {

std::vector<std::string> ModelOptions::problems() const {
  std::vector<std::string> list;
  if (directory.empty())
    list.push_back(
        "Model/Directory is not set (a Hugging Face directory is expected, e.g. data/model); name "
        "a "
        "run file that sets it, or use --set Model/Directory=DIR");
  for (std::string& problem : Numbers::problems("Model/Arithmetic", "Model/Cache Type"))
    list.push_back(std::move(problem));
  return list;
}

std::vector<std::pair<std::string, WeightType>> named_weight_types() {
  return {{"bf16", WeightType::kBf16}, {"f32", WeightType::kF32}};
}

std::vector<std::pair<std::string, Arithmetic>> named_arithmetics() {
  return {
      {"f32", Arithmetic::kF32}, {"bf16", Arithmetic::kBf16}, {"bf16-dot", Arithmetic::kBf16Dot}};
}

std::string to_string(Arithmetic arithmetic) {
  for (auto& [name, value] : named_arithmetics())
    if (value == arithmetic) return name;
  return "";
}

std::vector<std::pair<std::string, CacheType>> named_cache_types() {
  return {{"auto", CacheType::kAuto}, {"f32", CacheType::kF32}, {"bf16", CacheType::kBf16}};
}

KvType Numbers::kv_type() const {
#if defined(TAPER_CUDA)
  return arithmetic == Arithmetic::kBf16 ? KvType::kBf16 : KvType::kF32;
#else
  return cache == CacheType::kBf16 ? KvType::kBf16 : KvType::kF32;
#endif
}

std::vector<std::string> Numbers::problems(const std::string& arithmetic_key,
                                           [[maybe_unused]] const std::string& cache_key) const {
  std::vector<std::string> list;
  if (rounds_operands(arithmetic) && type == WeightType::kF32)
    list.push_back(arithmetic_key + " is " + to_string(arithmetic) +
                   ", but the forward weights are f32 (both operands of a product are bf16 in it); "
                   "set the weights to bf16, or the arithmetic to f32");
#if defined(TAPER_CUDA)
  if (arithmetic == Arithmetic::kBf16Dot)
    list.push_back(arithmetic_key +
                   " is bf16-dot, which is an arithmetic of CPUs; set it to bf16 or f32 on GPUs");
  const CacheType needed = kv_type() == KvType::kBf16 ? CacheType::kBf16 : CacheType::kF32;
  if (cache != CacheType::kAuto && cache != needed)
    list.push_back(cache_key +
                   " is not that of the arithmetic (on GPUs the cache has the type that products "
                   "take); set it to auto");
#endif
  return list;
}

TrainPassOptions PassOptions::train_pass(const Precision& precision) const {
  TrainPassOptions pass;
  pass.max_rows = max_tokens;
  pass.checkpointing = checkpointing ? Checkpointing::kYes : Checkpointing::kNo;
  pass.precision = precision;
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
