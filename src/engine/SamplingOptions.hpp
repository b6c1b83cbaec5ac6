// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/Random.hpp"
#include "base/Response.hpp"

namespace taper {

// How tokens are drawn, the same for all requests of a generation.
struct SamplingOptions {
  float temperature = 1.0f;  // 0: greedy (log-probs are then reported at temperature 1)
  int top_k = 0;             // 0: off
  float top_p = 1.0f;        // 1: off
  float min_p = 0.0f;        // 0: off
  std::uint64_t seed = 0;
  RandomPurpose purpose = RandomPurpose::kSampling;
  std::uint64_t iteration = 0;
  // By ResponseId::prompt, if prompts have keys of their own; empty: their iteration and id.
  std::vector<PromptKey> keys = {};
  float repetition_penalty = 1.0f;  // 1: off; applied before the temperature

  PromptKey key_of(std::int64_t prompt) const {
    if (keys.empty()) return {iteration, static_cast<std::uint64_t>(prompt)};
    return keys.at(static_cast<std::size_t>(prompt));
  }
  bool truncates() const { return top_k > 0 || top_p < 1.0f || min_p > 0.0f; }
  std::vector<std::string> problems() const;
};

}  // namespace taper
