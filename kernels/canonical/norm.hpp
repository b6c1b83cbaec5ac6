// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/canonical/lanes.hpp"

namespace taper::canonical {

// One vector; returns 1 / rms.
inline float rmsnorm(float* y, const float* x, const float* gain, int n, float eps) {
  const float inverse = 1.0f / std::sqrt(lane_dot(x, x, n) / static_cast<float>(n) + eps);
  for (int i = 0; i < n; ++i) y[i] = (x[i] * inverse) * gain[i];
  return inverse;
}

// The gradient by x of one vector; the caller assigns or adds it.
inline void rmsnorm_backward(float* dx, const float* dy, const float* x, const float* gain, int n,
                             float inverse) {
  Lanes chains{};
  for (int i = 0; i < n; ++i)
    chains[i % kLanes] = std::fma(dy[i] * gain[i], x[i], chains[i % kLanes]);
  const float factor = -(sum_lanes(chains) * inverse * inverse * inverse / static_cast<float>(n));
  for (int i = 0; i < n; ++i) dx[i] = std::fma(x[i], factor, (dy[i] * gain[i]) * inverse);
}

// dgain += dy * x * inverse over vectors in ascending order; x and dy at a distance of `stride`.
inline void accumulate_gain(float* dgain, const float* dy, const float* x, const float* inverse,
                            int vectors, int n, int stride) {
  for (int v = 0; v < vectors; ++v)
    for (int i = 0; i < n; ++i) dgain[i] += (dy[v * stride + i] * x[v * stride + i]) * inverse[v];
}

}  // namespace taper::canonical
