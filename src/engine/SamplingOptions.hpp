// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/Random.hpp"

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
  float repetition_penalty = 1.0f;  // 1: off; applied before the temperature

  bool truncates() const { return top_k > 0 || top_p < 1.0f || min_p > 0.0f; }
  std::vector<std::string> problems() const;
};

}  // namespace taper
