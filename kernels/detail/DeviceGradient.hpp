// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include "kernels/gradient.hpp"

namespace taper::detail {

// Sums of a gradient for kernels that run on any Kokkos execution space.
class DeviceGradient {
 public:
  explicit DeviceGradient(const GradientView& sums) : f32_(sums.f32()), fixed_(sums.fixed()) {}

  KOKKOS_INLINE_FUNCTION float operator()(std::int64_t i) const {
    return fixed_ == nullptr ? f32_[i] : to_float(fixed_[i]);
  }
  // What a chain of element i begins with, and what becomes of it.
  KOKKOS_INLINE_FUNCTION float begin(std::int64_t i) const {
    return fixed_ == nullptr ? f32_[i] : 0.0f;
  }
  KOKKOS_INLINE_FUNCTION void end(std::int64_t i, float chain) const {
    if (fixed_ == nullptr)
      f32_[i] = chain;
    else
      fixed_[i] += to_fixed(chain);
  }

 private:
  float* f32_;
  Fixed* fixed_;
};

}  // namespace taper::detail
