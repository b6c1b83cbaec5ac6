// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of kernels/canonical for kernels that run on any Kokkos execution space: the same
// operations in the same order, so that a device with `-fmad=false -ftz=true` has the bits of the
// host.
#pragma once

#include <Kokkos_BitManipulation.hpp>
#include <Kokkos_MathematicalFunctions.hpp>
#include <cstdint>

namespace taper::detail {

inline constexpr int kDeviceLanes = 16;  // element i of a vector belongs to lane i % 16

// canonical::exp: e^x by two-step range reduction and a polynomial of degree 7; 0 below -87.3.
KOKKOS_INLINE_FUNCTION float device_exp(float x) {
  if (x != x) return x;
  if (x <= -87.3f) return 0.0f;
  if (x > 88.0f) x = 88.0f;
  const float n = Kokkos::nearbyint(x * 1.44269504088896341f);
  float r = Kokkos::fma(n, -0.693145751953125f, x);
  r = Kokkos::fma(n, -1.42860682030941723212e-6f, r);
  float p = 1.0f / 5040.0f;
  p = Kokkos::fma(p, r, 1.0f / 720.0f);
  p = Kokkos::fma(p, r, 1.0f / 120.0f);
  p = Kokkos::fma(p, r, 1.0f / 24.0f);
  p = Kokkos::fma(p, r, 1.0f / 6.0f);
  p = Kokkos::fma(p, r, 0.5f);
  p = Kokkos::fma(p, r, 1.0f);
  p = Kokkos::fma(p, r, 1.0f);
  // -126 <= n <= 127: 2^n is a normal number.
  return p * Kokkos::bit_cast<float>(static_cast<std::uint32_t>(static_cast<int>(n) + 127) << 23);
}

// canonical::swiglu of one element.
KOKKOS_INLINE_FUNCTION float swiglu_of(float gate, float up) {
  return gate / (1.0f + device_exp(0.0f - gate)) * up;
}

// canonical::rope of the pair (k, k + half) of a head.
KOKKOS_INLINE_FUNCTION void rotate_pair(float* head, const float* angles, int half, int k,
                                        float sign) {
  const float a = head[k], b = head[half + k], cosine = angles[k], sine = sign * angles[half + k];
  head[k] = a * cosine - b * sine;
  head[half + k] = b * cosine + a * sine;
}

// The tree over sixteen lanes: i with i + 8, then i + 4, i + 2, i + 1.
KOKKOS_INLINE_FUNCTION float device_sum_lanes(const float* lanes) {
  float x[kDeviceLanes];
  for (int i = 0; i < kDeviceLanes; ++i) x[i] = lanes[i];
  for (int width = kDeviceLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) x[i] += x[i + width];
  return x[0];
}

}  // namespace taper::detail
