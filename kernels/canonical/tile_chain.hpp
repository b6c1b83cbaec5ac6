// SPDX-License-Identifier: Apache-2.0
//
// Sums of products of bf16 values as the tile units of x86 processors make them (TDPBF16PS of
// Intel's AMX): the definition of Arithmetic::kBf16 on CPUs, whatever instructions compute it.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/Bf16.hpp"

namespace taper::canonical {

// Inputs of a block: a row of a tile has 64 bytes.
inline constexpr int kTileInputs = 32;

// Operands are rounded to bf16 (to_operand()). The inputs of a block are summed in two chains of
// fused multiply-adds from zero, one over the even and one over the odd ones; the chains are added,
// and their sum to what there was. Blocks come in ascending order; the last one is filled up with
// zeros. Denormals count as zero.
struct TileChain {
  float operator()(float start, const float* a, std::int64_t a_step, const float* b,
                   std::int64_t b_step, int n) const {
    const auto rounded = [n](const float* x, std::int64_t step, int k) {
      return k < n ? to_float(to_operand(x[k * step])) : 0.0f;
    };
    for (int block = 0; block < n; block += kTileInputs) {
      float even = 0.0f, odd = 0.0f;
      for (int k = block; k < block + kTileInputs; k += 2) {
        even = std::fma(rounded(a, a_step, k), rounded(b, b_step, k), even);
        odd = std::fma(rounded(a, a_step, k + 1), rounded(b, b_step, k + 1), odd);
      }
      start += even + odd;
    }
    return start;
  }
};

}  // namespace taper::canonical
