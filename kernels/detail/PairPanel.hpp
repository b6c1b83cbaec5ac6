// SPDX-License-Identifier: Apache-2.0
//
// Packed weights of Arithmetic::kBf16 and kBf16Dot on the host: panels of 64 columns as in f32
// arithmetic, but with two inputs side by side, which is how tile units and dot products read them
// and other vector units take them apart most cheaply. Input k of column c stands at (k / 2) * 128
// + 2 c + k % 2; the last one of an odd number of inputs at k * 64 + c, so that a panel takes no
// more room. Static: host_ops.inl.hpp says why.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/Bf16.hpp"
#include "kernels/detail/Product.hpp"

namespace taper::detail {

inline constexpr int kPairBlock = 32;  // inputs, as canonical/pair_chain.hpp has them

// Where an input of a column stands in a panel that ends with input k_total - 1.
static constexpr std::int64_t pair_offset(int k, int c, int k_total) {
  const bool is_alone = k + 1 == k_total && k % 2 == 0;
  return is_alone ? std::int64_t{k} * kPanel + c
                  : std::int64_t{k / 2} * (2 * kPanel) + 2 * c + k % 2;
}

// The last inputs of a leaf, n of them from `inputs` on, less than a block, with zeros beyond.
// ends_panel: they are the last ones of the panel, too.
static inline void copy_last_block(bf16* block, const bf16* inputs, int n, bool ends_panel) {
  const int in_pairs = n / 2 * 2;
  std::memcpy(block, inputs, sizeof(bf16) * in_pairs * kPanel);
  std::memset(static_cast<void*>(block + in_pairs * kPanel), 0,
              sizeof(bf16) * (kPairBlock - in_pairs) * kPanel);
  if (in_pairs == n) return;
  for (int c = 0; c < kPanel; ++c)
    block[pair_offset(in_pairs, c, kPairBlock)] =
        inputs[in_pairs * kPanel + (ends_panel ? c : 2 * c)];
}

// How many of the inputs that are left are taken next, at most `window`: whole blocks, and in the
// end what is less than one.
static constexpr int next_inputs(int left, int window) {
  const int n = left < window ? left : window;
  return n > kPairBlock ? n / kPairBlock * kPairBlock : n;
}

}  // namespace taper::detail
