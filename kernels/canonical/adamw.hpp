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

// Blocks of 1024: lane chains in a block, double over blocks.
inline double sum_squares(const float* x, std::int64_t n) {
  constexpr std::int64_t kBlock = 1024;
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; i += kBlock)
    sum += lane_dot(x + i, x + i, static_cast<int>(std::min(kBlock, n - i)));
  return sum;
}

}  // namespace taper::canonical
