// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/canonical/lanes.hpp"

namespace taper::canonical {

// Divides the first n logits by the temperature; returns their maximum.
inline float scale_logits(float* logits, int n, float temperature) {
  float best = -std::numeric_limits<float>::infinity();
  for (int i = 0; i < n; ++i) best = std::max(best, logits[i] = logits[i] / temperature);
  return best;
}

inline std::int64_t mass(float logit, float max) {
  return std::llrint(exp(logit - max) * 0x1p40f);
}

inline std::int64_t sum_masses(const float* logits, int n, float max) {
  std::int64_t sum = 0;
  for (int i = 0; i < n; ++i) sum += mass(logits[i], max);
  return sum;
}

// The first index at which the running sum passes target, -1 if none does or target is negative.
inline int find_mass(const float* logits, int n, float max, std::int64_t target) {
  if (target < 0) return -1;
  for (int i = 0; i < n; ++i)
    if ((target -= mass(logits[i], max)) < 0) return i;
  return -1;
}

// Lane trees of blocks of sixteen logits, each rounded to a multiple of 2^-40.
inline std::int64_t sum_weighted_logits(const float* logits, int n, float max) {
  std::int64_t sum = 0;
  for (int begin = 0; begin < n; begin += kLanes) {
    Lanes block{};
    for (int i = begin; i < std::min(n, begin + kLanes); ++i) {
      const float centred = std::max(-200.0f, logits[i] - max);
      block[i - begin] = exp(centred) * centred;
    }
    sum += std::llrint(sum_lanes(block) * 0x1p40f);
  }
  return sum;
}

// In place: n scaled logits -> gradient by the raw ones; target is -1 if another shard owns it.
inline void logit_gradients(float* logits, int n, float lse, float entropy, float by_log_prob,
                            float by_entropy, int target, float temperature) {
  const float inverse = 1.0f / temperature;
  for (int i = 0; i < n; ++i) {
    const float log_p = std::max(-200.0f, logits[i] - lse);
    logits[i] = exp(log_p) * std::fma(-by_entropy, log_p + entropy, -by_log_prob) * inverse;
  }
  if (target >= 0) logits[target] += by_log_prob * inverse;
}

}  // namespace taper::canonical
