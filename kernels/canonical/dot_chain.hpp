// SPDX-License-Identifier: Apache-2.0
//
// Sums of products of bf16 values as the dot products of x86 processors' vector units make them
// (VDPBF16PS of AVX512-BF16): the definition of Arithmetic::kBf16Dot, whatever instructions compute
// it.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/Bf16.hpp"

namespace taper::canonical {

// Operands are rounded to bf16 (to_operand()). One chain of fused multiply-adds over pairs of
// inputs in ascending order, of each pair first the odd one; an odd number of inputs is filled up
// with a zero. Denormals count as zero.
struct DotChain {
  float operator()(float start, const float* a, std::int64_t a_step, const float* b,
                   std::int64_t b_step, int n) const {
    const auto rounded = [n](const float* x, std::int64_t step, int k) {
      return k < n ? to_float(to_operand(x[k * step])) : 0.0f;
    };
    for (int k = 0; k < n; k += 2) {
      start = std::fma(rounded(a, a_step, k + 1), rounded(b, b_step, k + 1), start);
      start = std::fma(rounded(a, a_step, k), rounded(b, b_step, k), start);
    }
    return start;
  }
};

}  // namespace taper::canonical
