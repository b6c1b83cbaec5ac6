// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/detail/Product.hpp"

namespace taper::detail {

// Chains of R rows x N vectors of columns over n values of k. `w` points at the first column.
template <class S, int R, int N, class W>
inline void extend_chains(const float* a, std::int64_t a_row, std::int64_t a_k, const W* w, std::int64_t w_k, int n,
                          typename S::V (&acc)[R][N]) {
  for (int k = 0; k < n; ++k) {
    typename S::V column[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) column[j] = S::load(w + k * w_k + 16 * j);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const typename S::V x = S::set1(a[r * a_row + k * a_k]);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) acc[r][j] = S::fma(x, column[j], acc[r][j]);
    }
  }
}

// The valid lanes of vector j of a strip that starts at `column`.
inline int valid_lanes(const ProductArgs& args, int column) {
  const int n = args.columns - column;
  return n < 0 ? 0 : (n > 16 ? 16 : n);
}

// One leaf, no tree, weights as they lie: whole chains of R rows.
template <class S, int R, int N, class W>
inline void column_block(const ProductArgs& args, int row, int column, const W* w) {
  typename S::V acc[R][N];
  float* y = args.y + row * args.y_row + column;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j)
      acc[r][j] =
          args.accumulate ? S::load_n(y + r * args.y_row + 16 * j, valid_lanes(args, column + 16 * j)) : S::zero();
  extend_chains<S, R, N, W>(args.a + row * args.a_row, args.a_row, args.a_k, w, args.w_k, args.last_leaf_k, acc);
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) {
    const int lanes = valid_lanes(args, column + 16 * j);
    const typename S::V bias = args.bias != nullptr ? S::load_n(args.bias + column + 16 * j, lanes) : S::zero();
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      S::store_n(y + r * args.y_row + 16 * j, args.bias != nullptr ? S::add(acc[r][j], bias) : acc[r][j], lanes);
  }
}

// Leaves and their tree: partial sums wait in `stack` (depth, R, 16 N) and are stored at the end.
template <class S, int R, int N, class W>
inline void leaf_block(const ProductArgs& args, int row, int column, const W* w, float* stack) {
  constexpr int kWidth = 16 * N;
  int depth = 0;
  for (int leaf = 0; leaf < args.leaves; ++leaf) {
    typename S::V acc[R][N];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) acc[r][j] = S::zero();
    const int n = leaf + 1 == args.leaves ? args.last_leaf_k : args.leaf_k;
    extend_chains<S, R, N, W>(args.a + row * args.a_row + leaf * args.a_leaf, args.a_row, args.a_k,
                              w + leaf * args.w_leaf, args.w_k, n, acc);
    for (int merges = args.program[leaf]; merges > 0; --merges) {
      const float* lower = stack + --depth * (R * kWidth);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) acc[r][j] = S::add(S::load(lower + r * kWidth + 16 * j), acc[r][j]);
    }
    float* top = stack + depth++ * (R * kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) S::store(top + r * kWidth + 16 * j, acc[r][j]);
  }
  for (int partial = 0; partial < args.partials; ++partial)
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < N; ++j)
        S::store_n(args.y + partial * args.y_partial + (row + r) * args.y_row + column + 16 * j,
                   S::load(stack + (partial * R + r) * kWidth + 16 * j), valid_lanes(args, column + 16 * j));
}

// Calls f.template operator()<R>(row) for blocks of rows, the largest first.
template <class S, class F>
inline void for_row_blocks(int begin, int end, const F& f) {
  int row = begin;
  if constexpr (S::kProductRows >= 6) {
    for (; row + 6 <= end; row += 6) f.template operator()<6>(row);
    if (row + 4 <= end) {
      f.template operator()<4>(row);
      row += 4;
    }
    if (row + 3 <= end) {
      f.template operator()<3>(row);
      row += 3;
    }
  }
  for (; row + 2 <= end; row += 2) f.template operator()<2>(row);
  for (; row < end; ++row) f.template operator()<1>(row);
}

// Few rows: weights are widened on the way into registers.
template <class S, class W>
inline void direct_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  constexpr int N = S::kProductVectors;
  alignas(64) float stack[kMaxTreeDepth * S::kProductRows * 16 * N];
  const W* w = static_cast<const W*>(args.w) + panel * args.w_panel;
  for (int c = 0; c < kPanel && panel * kPanel + c < args.columns; c += 16 * N)
    for_row_blocks<S>(row_begin, row_end, [&]<int R>(int row) {
      if (args.program == nullptr)
        column_block<S, R, N, W>(args, row, panel * kPanel + c, w + c);
      else
        leaf_block<S, R, N, W>(args, row, panel * kPanel + c, w + c, stack);
    });
}

// From so many rows on, 64 columns x 64 values of k at a time are first widened or gathered into a contiguous strip
// that fills half of a first-level cache; meanwhile all chains wait in memory of the task's own, not in y, whose rows
// may lie a power of two apart.
inline constexpr int kStripRows = 12;
inline constexpr int kStripK = 64;

// strip (n, 64) from n values of k of the first `columns` columns of a panel; zeros beyond.
template <class S, class W>
inline void fill_strip(float* strip, const W* w, std::int64_t w_k, int n, int columns) {
  for (int k = 0; k < n; ++k, w += w_k, strip += kPanel) {
    if (columns == kPanel)
      for (int c = 0; c < kPanel; c += 16) S::store(strip + c, S::load(w + c));
    else  // a row of a plain matrix may end here
      for (int c = 0; c < kPanel; ++c) strip[c] = c < columns ? to_float(w[c]) : 0.0f;
  }
}

// Extends the chains of R rows over a strip. They wait in `top`, rows 64 apart; a leaf's last strip is then added to
// `merges` lower sums, `level` floats apart each, the result standing where the last of them stood.
template <class S, int R, int N>
inline void strip_block(const float* a, std::int64_t a_row, std::int64_t a_k, const float* strip, int n, bool fresh,
                        float* top, int merges, std::int64_t level) {
  typename S::V acc[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = fresh ? S::zero() : S::load(top + r * kPanel + 16 * j);
  extend_chains<S, R, N, float>(a, a_row, a_k, strip, kPanel, n, acc);
  for (; merges > 0; --merges) {
    top -= level;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) acc[r][j] = S::add(S::load(top + r * kPanel + 16 * j), acc[r][j]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) S::store(top + r * kPanel + 16 * j, acc[r][j]);
}

// Copies sums (partials, rows, 64) to y, with the bias.
template <class S>
inline void store_sums(const ProductArgs& args, int row_begin, int rows, int panel, const float* sums) {
  for (int partial = 0; partial < args.partials; ++partial)
    for (int r = 0; r < rows; ++r, sums += kPanel)
      for (int c = 0; c < kPanel; c += 16) {
        const int column = panel * kPanel + c, lanes = valid_lanes(args, column);
        typename S::V sum = S::load(sums + c);
        if (args.bias != nullptr) sum = S::add(sum, S::load_n(args.bias + column, lanes));
        S::store_n(args.y + partial * args.y_partial + (row_begin + r) * args.y_row + column, sum, lanes);
      }
}

template <class S, class W>
inline void strip_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  constexpr int N = S::kProductVectors;
  alignas(64) float strip[kStripK * kPanel];
  alignas(64) float stack[kMaxTreeDepth * kLeafRows * kPanel];  // (depth, rows, 64); the deeper levels stay untouched
  const int rows = row_end - row_begin;
  const int columns = args.columns - panel * kPanel < kPanel ? args.columns - panel * kPanel : kPanel;
  const std::int64_t level = std::int64_t{rows} * kPanel;
  if (args.accumulate)
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < kPanel; c += 16)
        S::store(stack + r * kPanel + c, S::load_n(args.y + (row_begin + r) * args.y_row + panel * kPanel + c,
                                                   valid_lanes(args, panel * kPanel + c)));
  float* top = stack;
  for (int leaf = 0; leaf < args.leaves; ++leaf) {
    const W* w = static_cast<const W*>(args.w) + panel * args.w_panel + leaf * args.w_leaf;
    const float* a = args.a + row_begin * args.a_row + leaf * args.a_leaf;
    const int k_total = leaf + 1 == args.leaves ? args.last_leaf_k : args.leaf_k;
    const int merges = args.program == nullptr ? 0 : args.program[leaf];
    for (int k0 = 0; k0 == 0 || k0 < k_total; k0 += kStripK) {
      const int n = k_total - k0 < kStripK ? k_total - k0 : kStripK;
      fill_strip<S, W>(strip, w + k0 * args.w_k, args.w_k, n, columns);
      const bool fresh = k0 == 0 && !args.accumulate, whole = k0 + n == k_total;
      for (int c = 0; c < columns; c += 16 * N)
        for_row_blocks<S>(0, rows, [&]<int R>(int row) {
          strip_block<S, R, N>(a + row * args.a_row + k0 * args.a_k, args.a_row, args.a_k, strip + c, n, fresh,
                               top + row * kPanel + c, whole ? merges : 0, level);
        });
    }
    top += (1 - merges) * level;
  }
  store_sums<S>(args, row_begin, rows, panel, stack);
}

// One task of a product: rows [row_begin, row_end) of one panel.
template <class S>
void product_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  // A plain matrix always goes through the strip: its last columns must not be read past the row's end.
  const bool strip_pays = row_end - row_begin >= kStripRows || args.w_k != kPanel;
  if (strip_pays)
    args.w_is_bf16 ? strip_task<S, bf16>(args, row_begin, row_end, panel)
                   : strip_task<S, float>(args, row_begin, row_end, panel);
  else
    args.w_is_bf16 ? direct_task<S, bf16>(args, row_begin, row_end, panel)
                   : direct_task<S, float>(args, row_begin, row_end, panel);
}

}  // namespace taper::detail
