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
#include "kernels/canonical/tile_chain.hpp"
#include "kernels/detail/Product.hpp"

namespace taper::detail {

using canonical::kTileInputs;  // of a block

static constexpr int in_blocks(int inputs) {
  return quotient_up(inputs, kTileInputs);
}

// Where an input of a column stands in a panel that ends with input k_total - 1.
static constexpr std::int64_t pair_offset(int k, int c, int k_total) {
  const bool is_alone = k + 1 == k_total && k % 2 == 0;
  return is_alone ? std::int64_t{k} * kPanel + c
                  : std::int64_t{k / 2} * (2 * kPanel) + 2 * c + k % 2;
}

// Packs a panel of which `columns` columns are there: element (k, c) is stored[k * k_step + c *
// column_step], beyond are zeros.
template <class T>
static void pack_in_pairs(bf16* panel, const T* stored, int columns, int k_total,
                          std::int64_t column_step, std::int64_t k_step) {
  const auto element = [=](int k, int c) {
    return to_bf16(to_float(stored[k * k_step + c * column_step]));
  };
  auto* pairs = reinterpret_cast<Bf16Pair*>(panel);
  for (int k = 0; k + 1 < k_total; k += 2, pairs += kPanel) {
    for (int c = 0; c < columns; ++c) pairs[c] = {element(k, c), element(k + 1, c)};
    for (int c = columns; c < kPanel; ++c) pairs[c] = {};
  }
  if (const int last = k_total - 1; k_total % 2 != 0)
    for (int c = 0; c < kPanel; ++c)
      panel[pair_offset(last, c, k_total)] = c < columns ? element(last, c) : bf16{};
}

// The last inputs of a leaf, n of them from `inputs` on, less than a block, with zeros beyond.
// ends_panel: they are the last ones of the panel, too.
static inline void copy_last_block(bf16* block, const bf16* inputs, int n, bool ends_panel) {
  const int in_pairs = n / 2 * 2;
  std::memcpy(block, inputs, sizeof(bf16) * in_pairs * kPanel);
  std::memset(static_cast<void*>(block + in_pairs * kPanel), 0,
              sizeof(bf16) * (kTileInputs - in_pairs) * kPanel);
  if (in_pairs == n) return;
  for (int c = 0; c < kPanel; ++c)
    block[pair_offset(in_pairs, c, kTileInputs)] =
        inputs[in_pairs * kPanel + (ends_panel ? c : 2 * c)];
}

// How many of the inputs that are left are taken next, at most `window`: whole blocks, and in the
// end what is less than one.
static constexpr int next_inputs(int left, int window) {
  const int n = left < window ? left : window;
  return n > kTileInputs ? n / kTileInputs * kTileInputs : n;
}

}  // namespace taper::detail
