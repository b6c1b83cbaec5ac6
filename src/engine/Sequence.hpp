// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/Request.hpp"

namespace taper {

// One response in the making (or a prompt whose samples have not parted yet).
struct Sequence {
  ResponseId id;    // of the first, if there are several
  int samples = 1;  // > 1: a prompt that is still being read for several samples
  int prompt_length = 0;
  int max_new_tokens = 0;
  std::vector<std::int32_t> lengths;  // replayed, one a sample; empty: as the tokens say
  std::vector<std::int32_t> tokens;   // prompt, then response
  std::vector<float> log_probs, kept_mass;
  std::vector<std::int32_t> blocks;  // pages of positions [0, computed)
  int computed = 0;                  // positions whose keys and values are in the cache
  int preemptions = 0;
  std::vector<ProducedBy> spans;  // of the response

  int length() const { return static_cast<int>(tokens.size()); }
  // Tokens to be computed next: 1 in plain decoding.
  int pending() const { return length() - computed; }
};

}  // namespace taper
