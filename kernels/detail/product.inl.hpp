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

// One leaf, no tree: k in [k0, k0 + n); the chain goes on from y unless it starts here.
template <class S, int R, int N, class W>
inline void column_block(const ProductArgs& args, int row, int column, const W* w, std::int64_t w_k, int k0, int n,
                         bool first, bool last) {
  typename S::V acc[R][N];
  float* y = args.y + row * args.y_row + column;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j)
      acc[r][j] = (first && !args.accumulate)
                      ? S::zero()
                      : S::load_n(y + r * args.y_row + 16 * j, valid_lanes(args, column + 16 * j));
  extend_chains<S, R, N, W>(args.a + row * args.a_row + k0 * args.a_k, args.a_row, args.a_k, w, w_k, n, acc);
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) {
    const int lanes = valid_lanes(args, column + 16 * j);
    const bool biased = last && args.bias != nullptr;
    const typename S::V bias = biased ? S::load_n(args.bias + column + 16 * j, lanes) : S::zero();
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      S::store_n(y + r * args.y_row + 16 * j, biased ? S::add(acc[r][j], bias) : acc[r][j], lanes);
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

// From so many rows on, 64 columns x 128 values of k are first widened or gathered into a contiguous strip in L1.
inline constexpr int kStripRows = 12;
inline constexpr int kStripK = 128;

template <class S, class W>
inline void column_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  constexpr int N = S::kProductVectors;
  const W* w = static_cast<const W*>(args.w) + panel * args.w_panel;
  const int k_total = args.last_leaf_k;
  // A plain matrix always goes through the strip: its last columns must not be read past the row's end.
  const bool strip_pays = row_end - row_begin >= kStripRows || args.w_k != kPanel;
  if (!strip_pays) {
    for (int c = 0; c < kPanel && panel * kPanel + c < args.columns; c += 16 * N)
      for_row_blocks<S>(row_begin, row_end, [&]<int R>(int row) {
        column_block<S, R, N, W>(args, row, panel * kPanel + c, w + c, args.w_k, 0, k_total, true, true);
      });
    return;
  }
  alignas(64) float strip[kStripK * kPanel];
  const int columns = args.columns - panel * kPanel < kPanel ? args.columns - panel * kPanel : kPanel;
  for (int k0 = 0; k0 < k_total; k0 += kStripK) {
    const int n = k_total - k0 < kStripK ? k_total - k0 : kStripK;
    if (columns == kPanel || args.w_k == kPanel) {
      for (int k = 0; k < n; ++k)
        for (int c = 0; c < kPanel; c += 16)
          S::store(strip + k * kPanel + c, S::load(w + (k0 + k) * args.w_k + c));
    } else {  // rows of a plain matrix may end inside the panel
      for (int k = 0; k < n; ++k)
        for (int c = 0; c < kPanel; ++c) strip[k * kPanel + c] = c < columns ? to_float(w[(k0 + k) * args.w_k + c]) : 0;
    }
    for (int c = 0; c < columns; c += 16 * N)
      for_row_blocks<S>(row_begin, row_end, [&]<int R>(int row) {
        column_block<S, R, N, float>(args, row, panel * kPanel + c, strip + c, kPanel, k0, n, k0 == 0,
                                     k0 + n == k_total);
      });
  }
}

template <class S, class W>
inline void leaf_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  constexpr int N = S::kProductVectors;
  alignas(64) float stack[kMaxTreeDepth * S::kProductRows * 16 * N];
  const W* w = static_cast<const W*>(args.w) + panel * args.w_panel;
  for (int c = 0; c < kPanel && panel * kPanel + c < args.columns; c += 16 * N)
    for_row_blocks<S>(row_begin, row_end,
                      [&]<int R>(int row) { leaf_block<S, R, N, W>(args, row, panel * kPanel + c, w + c, stack); });
}

// One task of a product: rows [row_begin, row_end) of one panel.
template <class S>
void product_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  if (args.program == nullptr)
    args.w_is_bf16 ? column_task<S, bf16>(args, row_begin, row_end, panel)
                   : column_task<S, float>(args, row_begin, row_end, panel);
  else
    args.w_is_bf16 ? leaf_task<S, bf16>(args, row_begin, row_end, panel)
                   : leaf_task<S, float>(args, row_begin, row_end, panel);
}

}  // namespace taper::detail
