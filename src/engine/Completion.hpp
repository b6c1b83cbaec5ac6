// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/Response.hpp"

namespace taper {

// One finished response.
struct Completion {
  ResponseId id;
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> response;
  std::vector<float> log_probs;  // per response token, of the full softmax at the temperature
  std::vector<float> kept_mass;  // probability that top-k, top-p and min-p left; 1 without them
  FinishReason finish = FinishReason::kEos;
  std::vector<ProducedBy> spans;

  // Tokens, with the prompt.
  std::int64_t length() const { return std::ssize(prompt) + std::ssize(response); }
};

}  // namespace taper
