// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/Sequence.hpp"

namespace taper::test {

// A sequence that has got so far.
inline Sequence sequence(int prompt, int sample, const std::vector<std::int32_t>& prompt_tokens,
                         const std::vector<std::int32_t>& response) {
  Sequence s;
  s.id = {prompt, sample};
  s.prompt_length = static_cast<int>(prompt_tokens.size());
  s.tokens = prompt_tokens;
  s.tokens.insert(s.tokens.end(), response.begin(), response.end());
  return s;
}

}  // namespace taper::test
