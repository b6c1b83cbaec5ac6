// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/Response.hpp"
#include "kernels/Staging.hpp"

namespace taper {

// One response in the making; or a prompt that is still being read for several samples at once,
// each of which becomes a sequence of its own with its first token.
struct Sequence {
  ResponseId id;  // of the first sample, if there are several
  int samples = 1;
  int prompt_length = 0;
  int max_new_tokens = 0;
  std::vector<std::int32_t> pinned;  // as in Request, of these samples
  std::vector<std::int32_t> tokens;  // prompt, then response (and, within a step, guesses)
  std::vector<float> log_probs, kept_mass;
  Staged<std::int32_t> blocks;    // pages of positions [0, computed)
  int computed = 0;               // positions whose keys and values are in the cache
  std::vector<ProducedBy> spans;  // of the response

  int length() const { return static_cast<int>(tokens.size()); }
  // Tokens to be computed next: 1 in plain decoding.
  int pending() const { return length() - computed; }
  bool is_shared_prompt() const { return samples > 1; }
  // Tokens of a response, at most.
  int limit() const {
    return pinned.empty() ? max_new_tokens : std::min(pinned.front(), max_new_tokens);
  }
  // Sample k of those of a shared prompt, by itself.
  Sequence fork(int k) const;
};

inline Sequence Sequence::fork(int k) const {
  Sequence child = *this;
  child.samples = 1;
  child.id.sample = id.sample + k;
  if (!pinned.empty()) child.pinned = {pinned[k]};
  return child;
}

}  // namespace taper
