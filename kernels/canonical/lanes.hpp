// SPDX-License-Identifier: Apache-2.0
//
// The canonical operations spell out, in scalar float, the order in which the fast kernels compute:
// sixteen lanes and their tree, leaves, chunks, one exponential. A fast kernel must have the same
// bits on every instruction set. They expect flush-to-zero and denormals-are-zero to be set, as
// every computing thread has them.
#pragma once

#include <array>
#include <cmath>
#include <limits>

namespace taper::canonical {

inline constexpr int kLanes = 16;
using Lanes = std::array<float, kLanes>;  // element i of a vector belongs to lane i % 16

// i with i + 8, then i + 4, i + 2, i + 1.
inline float sum_lanes(Lanes x) {
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) x[i] += x[i + width];
  return x[0];
}

// Sum of a[i] * b[i]: sixteen chains of fused multiply-adds, then their tree.
inline float lane_dot(const float* a, const float* b, int n) {
  Lanes chains{};
  for (int i = 0; i < n; ++i) chains[i % kLanes] = std::fma(a[i], b[i], chains[i % kLanes]);
  return sum_lanes(chains);
}

// Sum of x[i]: sixteen chains of additions, then their tree.
inline float lane_sum(const float* x, int n) {
  Lanes chains{};
  for (int i = 0; i < n; ++i) chains[i % kLanes] += x[i];
  return sum_lanes(chains);
}

// e^x: x = n ln2 + r in two fused steps, the Taylor polynomial of degree 7 in r by Horner, times
// 2^n.
inline float exp(float x) {
  if (std::isnan(x)) return x;
  if (x <= -87.3f) return 0.0f;
  if (x > 88.0f) x = 88.0f;
  const float n = std::nearbyint(x * 1.44269504088896341f);
  float r = std::fma(n, -0.693145751953125f, x);
  r = std::fma(n, -1.42860682030941723212e-6f, r);
  float p = 1.0f / 5040.0f;
  for (const float coefficient :
       {1.0f / 720.0f, 1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f, 1.0f, 1.0f})
    p = std::fma(p, r, coefficient);
  return std::ldexp(p, static_cast<int>(n));
}

}  // namespace taper::canonical
