// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/canonical/lanes.hpp"
#include "kernels/detail/Rows.hpp"

namespace taper::canonical {

inline void adamw(float& p, float& m, float& v, float gradient, const detail::AdamWStep& s) {
  const float g = gradient * s.grad_scale;
  m = s.beta1 * m + s.rest1 * g;
  v = s.beta2 * v + s.rest2 * g * g;
  const float root = std::sqrt(v) / s.sqrt_correction2 + s.eps;
  p = p * (1.0f - s.lr * s.weight_decay) - s.lr / s.correction1 * (m / root);
}

// 64 equal parts, each cut into blocks of 1024: lane chains in a block, double over blocks and then
// over parts.
inline double sum_squares(const float* x, std::int64_t n) {
  constexpr std::int64_t kParts = 64, kBlock = 1024;
  const std::int64_t part = (n + kParts - 1) / kParts;
  double total = 0.0;
  for (std::int64_t begin = 0; begin < n; begin += part) {
    const std::int64_t end = std::min(n, begin + part);
    double sum = 0.0;
    for (std::int64_t i = begin; i < end; i += kBlock)
      sum += lane_dot(x + i, x + i, static_cast<int>(std::min(kBlock, end - i)));
    total += sum;
  }
  return total;
}

}  // namespace taper::canonical
