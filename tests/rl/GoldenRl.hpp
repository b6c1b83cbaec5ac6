// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch_approx.hpp>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "io/Json.hpp"
#include "rl/KlPenalty.hpp"
#include "rl/Sample.hpp"

namespace taper::test {

// What PyTorch says (tests/golden/make_rl.py).
inline const Json& golden_rl() {
  static const Json golden = read_json_file(std::filesystem::path(TAPER_GOLDEN_DIR) / "rl.json");
  return golden;
}

// Within 1e-5, relative to numbers beyond 1.
inline Catch::Approx near(double value) {
  return Catch::Approx(value).epsilon(1e-5).margin(1e-5);
}

inline std::vector<float> floats(const Json& list) {
  return list.get<std::vector<float>>();
}

// A batch of the golden file by its name. `mask_truncated` leaves truncated samples without a loss.
inline std::vector<Sample> golden_samples(const Json& name, bool mask_truncated) {
  const Json& batch = golden_rl()["batches"][name.get<std::string>()];
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < batch["groups"].size(); ++i) {
    Sample s;
    s.id.prompt = batch["groups"][i].get<int>();
    s.id.sample = static_cast<int>(i);
    s.prompt = {1};
    s.response.assign(batch["old"][i].size(), 2);
    s.log_probs = floats(batch["old"][i]);
    s.ref_log_probs = floats(batch["ref"][i]);
    s.kept_mass = floats(batch["kept_mass"][i]);
    s.advantages = floats(batch["advantages"][i]);
    s.values = floats(batch["values"][i]);
    s.score = s.reward = batch["scores"][i].get<float>();
    if (batch["truncated"][i].get<int>() != 0) {
      s.finish = FinishReason::kLength;
      if (mask_truncated) s.mask.assign(s.response.size(), 0);
    }
    samples.push_back(std::move(s));
  }
  return samples;
}

// The same with the mask of a case, by sample and token.
inline std::vector<Sample> golden_samples(const Json& name, const Json& loss_tokens) {
  std::vector<Sample> samples = golden_samples(name, false);
  for (std::size_t i = 0; i < samples.size(); ++i)
    for (const auto& token : loss_tokens[i])
      samples[i].mask.push_back(token.get<double>() > 0.0 ? 1 : 0);
  return samples;
}

// The value that a list of (name, value) has for the name in a case.
template <class T>
T named(const std::vector<std::pair<std::string, T>>& list, const Json& name) {
  for (const auto& [key, value] : list)
    if (key == name.get<std::string>()) return value;
  throw std::out_of_range("no value is named " + name.get<std::string>());
}

inline KlEstimator golden_estimator(const Json& name) {
  return named<KlEstimator>(named_kl_estimators(), name);
}

}  // namespace taper::test
