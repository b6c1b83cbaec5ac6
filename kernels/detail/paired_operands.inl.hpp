// SPDX-License-Identifier: Apache-2.0
//
// Operands of products in pairs of inputs: as they were rounded before or are rounded by a task,
// and packed weights. What is not a template over the set S is static (host_ops.inl.hpp).
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/detail/PairPanel.hpp"
#include "kernels/detail/product.inl.hpp"

namespace taper::detail {

// Inputs that all rows of a task share before the next ones are read: their weights, 24 KiB, stay
// in the first-level cache while rows pass by.
inline constexpr int kPairWindow = 192;
static_assert(kPairWindow % kTileInputs == 0);

// How operands of a task lie, where they were rounded before (ProductArgs::rounded) as in the
// strips that tasks fill: row by row, or all rows of an input, or of a pair of inputs, side by
// side.
enum class InputOrder { kByRows, kByInputs };
static inline InputOrder order_of(const ProductArgs& args) {
  return args.a_k == 1 && args.pair_stride == 0 ? InputOrder::kByRows : InputOrder::kByInputs;
}

// Where the inputs of a task from k on stand that were rounded before (ProductArgs::rounded), and
// how many pairs from one row or pair of inputs to the next.
struct RoundedPairs {
  const Bf16Pair* begin;
  std::int64_t stride;
};
static inline RoundedPairs rounded_pairs(const TaskPart& part, InputOrder order, int leaf, int k) {
  const ProductArgs& args = part.args;
  const auto* const pairs = reinterpret_cast<const Bf16Pair*>(args.rounded);
  if (order == InputOrder::kByRows)
    return {pairs + (part.row_begin * args.a_row + leaf * args.a_leaf + k) / 2, args.a_row / 2};
  return {pairs + k / 2 * args.pair_stride + part.row_begin, args.pair_stride};
}

// n values as operands, and a zero if that makes whole pairs.
template <class S>
void round_values(bf16* to, const float* from, std::int64_t n) {
  std::int64_t k = 0;
  for (; k + 32 <= n; k += 32) S::store_rounded(to + k, S::load(from + k), S::load(from + k + 16));
  if (k == n) return;
  const int left = static_cast<int>(n - k), lower = left < 16 ? left : 16;
  bf16 last[32];
  S::store_rounded(last, S::load_n(from + k, lower), S::load_n(from + k + lower, left - lower));
  std::memcpy(to + k, last, sizeof(Bf16Pair) * ((left + 1) / 2));
}

// strip (padded / 2, width): pairs of successive rows of a plain matrix, of which n rows and
// `columns` columns are there, rounded to bf16, with zeros beyond; `filled` columns of it.
template <class S>
inline void fill_pairs(Bf16Pair* strip, std::int64_t width, int filled, const float* m,
                       std::int64_t step, int n, int padded, int columns) {
  const auto load = [&](int k, int c) {
    const int lanes = columns - c < 16 ? columns - c : 16;
    return k < n && lanes > 0 ? S::load_n(m + k * step + c, lanes) : S::zero();
  };
  for (int k = 0; k < padded; k += 2, strip += width)
    for (int c = 0; c < filled; c += 16) S::store_rounded(strip + c, load(k, c), load(k + 1, c));
}

// What follows so many pairs of a panel, unless these were brought into a strip.
static inline NextWeights weights_after(const Bf16Pair* w, int pairs, const Bf16Pair* strip) {
  const int bytes = pairs * kPanel * static_cast<int>(sizeof(Bf16Pair));
  return {w + pairs * kPanel, w == strip ? 0 : bytes, pairs};
}

// Weights of the n inputs of a leaf from k on, in whole multiples of `unit` inputs, all in pairs:
// where they are packed, or else brought into `strip`. Of packed ones, only the end of a leaf is no
// whole multiple, and less than one.
template <class S>
inline const Bf16Pair* pair_weights(const TaskPart& part, int leaf, int k, int n, int unit,
                                    Bf16Pair* strip) {
  const ProductArgs& args = part.args;
  if (!args.w_is_bf16) {
    fill_pairs<S>(strip, kPanel, kPanel, part.w<float>(leaf, k), args.w_k, n,
                  quotient_up(n, unit) * unit, part.columns);
    return strip;
  }
  const bf16* weights = part.w<bf16>(leaf, k);
  if (n % unit == 0) return reinterpret_cast<const Bf16Pair*>(weights);
  const bool ends_panel =
      leaf * args.w_leaf + std::int64_t{k + n} * kPanel == std::int64_t{args.w_inputs} * kPanel;
  copy_last_block(reinterpret_cast<bf16*>(strip), weights, n, ends_panel);
  return strip;
}

}  // namespace taper::detail
