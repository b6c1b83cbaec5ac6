// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/Response.hpp"

namespace taper {

// A prompt with all its samples.
struct Request {
  // Id of the first sample, the others are numbered on from it; ids are keys of random numbers.
  ResponseId first;
  int samples = 1;
  std::vector<std::int32_t> prompt;
  int max_new_tokens = 0;
  // Token limits of the samples, if their ends are given: a sample that reaches its own, below
  // max_new_tokens, has stopped. If empty, max_new_tokens is the only limit.
  std::vector<std::int32_t> pinned = {};

  // The request for `count` of the samples from the one with index `from` on.
  Request part(int from, int count) const;
};

}  // namespace taper
