// SPDX-License-Identifier: Apache-2.0
//
// Products of Arithmetic::kBf16 by the tile units of AMX: a tile has 16 rows of 64 bytes, and one
// instruction adds the products of 16 rows of A and 16 columns of W over a block of inputs to a
// tile of sums, exactly as canonical/tile_chain.hpp does it.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/detail/paired_operands.inl.hpp"

namespace taper::detail {

inline constexpr int kAmxRows = 16, kAmxColumns = 16;
inline constexpr int kAmxWindow = 512;  // inputs of which the rows of a task are rounded at a time

// strip (rows, kAmxWindow): n inputs of each row of a task from k on as bf16, and zeros up to
// whole blocks and tiles.
template <class S>
inline void fill_tiles(bf16* strip, const TaskPart& part, int leaf, int k, int n) {
  const ProductArgs& args = part.args;
  const float* const a = part.a(leaf, k);
  if (args.rounded != nullptr) {
    const InputOrder order = order_of(args);
    const RoundedPairs from = rounded_pairs(part, order, leaf, k);
    const int pairs = (n + 1) / 2;
    for (int r = 0; r < part.rows; ++r) {
      auto* const row = reinterpret_cast<Bf16Pair*>(strip + r * kAmxWindow);
      if (order == InputOrder::kByRows)
        std::memcpy(row, from.begin + r * from.stride, sizeof(Bf16Pair) * pairs);
      else
        for (int p = 0; p < pairs; ++p) row[p] = from.begin[p * from.stride + r];
    }
  } else if (args.a_k == 1) {
    for (int r = 0; r < part.rows; ++r)
      round_values<S>(strip + r * kAmxWindow, a + r * args.a_row, n);
  } else {
    for (int r = 0; r < part.rows; ++r)
      for (int i = 0; i < n; ++i)
        strip[r * kAmxWindow + i] = to_operand(a[r * args.a_row + i * args.a_k]);
  }
  const int whole = in_blocks(n) * kTileInputs;
  const int padded = quotient_up(part.rows, kAmxRows) * kAmxRows;
  for (int r = 0; r < padded; ++r)
    for (int i = r < part.rows ? n : 0; i < whole; ++i) strip[r * kAmxWindow + i] = bf16{};
}

// Rows of two tiles and columns of two: four tiles of sums, numbers 0 to 3, of which those in the
// first `row_tiles` count. T is the tile unit: its calls name tiles by number.
template <class T>
inline void add_block_products(const bf16* a, const Bf16Pair* w, int blocks, int row_tiles,
                               bool fresh, float* sums) {
  constexpr int kLine = kPanel * static_cast<int>(sizeof(float));
  constexpr int kRowBytes = kAmxWindow * static_cast<int>(sizeof(bf16));
  constexpr int kPairBytes = kPanel * static_cast<int>(sizeof(Bf16Pair));
  const bool both = row_tiles > 1;
  float* below = sums + kAmxRows * kPanel;
  if (fresh) {
    T::template zero<0>();
    T::template zero<1>();
    T::template zero<2>();
    T::template zero<3>();
  } else {
    T::template load<0>(sums, kLine);
    T::template load<1>(sums + kAmxColumns, kLine);
    if (both) {
      T::template load<2>(below, kLine);
      T::template load<3>(below + kAmxColumns, kLine);
    }
  }
  for (int b = 0; b < blocks; ++b, a += kTileInputs, w += kTileInputs / 2 * kPanel) {
    T::template load<4>(a, kRowBytes);
    T::template load<6>(w, kPairBytes);
    T::template load<7>(w + kAmxColumns, kPairBytes);
    T::template add_products<0, 4, 6>();
    T::template add_products<1, 4, 7>();
    if (both) {
      T::template load<5>(a + kAmxRows * kAmxWindow, kRowBytes);
      T::template add_products<2, 5, 6>();
      T::template add_products<3, 5, 7>();
    }
  }
  T::template store<0>(sums, kLine);
  T::template store<1>(sums + kAmxColumns, kLine);
  if (both) {
    T::template store<2>(below, kLine);
    T::template store<3>(below + kAmxColumns, kLine);
  }
}

// As tile_product_task(); S is the vector set for what is not a product.
template <class S, class T>
void amx_product_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  alignas(64) bf16 a_strip[kTaskRows * kAmxWindow];
  alignas(64) Bf16Pair w_strip[kAmxWindow / 2 * kPanel];
  // Levels have whole tiles of rows: the rows beyond are sums of zeros.
  alignas(64) float stack[kMaxTreeDepth * kLeafRows * kPanel];
  const int rows = row_end - row_begin;
  const int padded = quotient_up(rows, kAmxRows) * kAmxRows;
  const int columns =
      args.columns - panel * kPanel < kPanel ? args.columns - panel * kPanel : kPanel;
  const std::int64_t level = std::int64_t{padded} * kPanel;
  const TaskPart part{args, row_begin, rows, panel, columns};
  T::configure();
  if (args.accumulate) {
    for (std::int64_t i = 0; i < level; ++i) stack[i] = 0.0f;
    load_sums<S>(args, row_begin, rows, panel, stack);
  }
  float* top = stack;
  for (int leaf = 0; leaf < args.leaves; ++leaf) {
    const int k_total = leaf + 1 == args.leaves ? args.last_leaf_k : args.leaf_k;
    for (int k0 = 0, n = 0; k0 < k_total; k0 += n) {
      n = next_inputs(k_total - k0, kAmxWindow);
      const int blocks = in_blocks(n);
      fill_tiles<S>(a_strip, part, leaf, k0, n);
      const Bf16Pair* from = pair_weights<S>(part, leaf, k0, n, kTileInputs, w_strip);
      const bool fresh = k0 == 0 && !args.accumulate;
      for (int c = 0; c < columns; c += 2 * kAmxColumns)
        for (int row = 0; row < padded; row += 2 * kAmxRows)
          add_block_products<T>(a_strip + row * kAmxWindow, from + c, blocks,
                                padded - row > kAmxRows ? 2 : 1, fresh, top + row * kPanel + c);
    }
    for (int merges = args.program == nullptr ? 0 : args.program[leaf]; merges > 0; --merges) {
      top -= level;
      for (std::int64_t i = 0; i < level; i += 16)
        S::store(top + i, S::add(S::load(top + i), S::load(top + level + i)));
    }
    top += level;
  }
  T::release();
  // Without the rows beyond.
  float* sums = stack;
  for (int partial = 1; partial < args.partials; ++partial)
    for (int i = 0; i < rows * kPanel; ++i)
      sums[partial * rows * kPanel + i] = stack[partial * level + i];
  if (args.fixed != nullptr)
    add_fixed_sums<S>(args, row_begin, rows, panel, sums);
  else
    store_sums<S>(args, row_begin, rows, panel, sums);
}

}  // namespace taper::detail
