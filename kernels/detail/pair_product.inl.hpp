// SPDX-License-Identifier: Apache-2.0
//
// Products of Arithmetic::kBf16 by vector units (canonical/pair_chain.hpp). What is not a template
// over the set S is static (host_ops.inl.hpp).
#pragma once

#include <cstdint>

#include "kernels/detail/PairPanel.hpp"
#include "kernels/detail/product.inl.hpp"

namespace taper::detail {

// Inputs that all rows of a task share before the next ones are read: their weights, 16 KiB, stay
// in the first-level cache while rows pass by. Few rows read weights once anyway, and are better
// off with longer stretches of them.
inline constexpr int kPairWindow = 128;
inline constexpr int kFewRowsWindow = kTaskRows * kPairWindow / kFewRows;
static_assert(kFewRowsWindow % kPairBlock == 0);

// How rounded inputs of rows lie: row by row, `stride` apart, or input by input, kTaskRows apart.
enum class PairStrip { kByRows, kByInputs };
template <PairStrip strip>
inline float strip_value(const float* a, std::int64_t stride, int r, int k) {
  return strip == PairStrip::kByRows ? a[r * stride + k] : a[k * kTaskRows + r];
}

// Extends the sums of R rows x N vectors of columns by so many blocks. They wait in `top`, rows 64
// apart: registers hold the two chains of each. Merges are those of extend_block().
template <class S, int R, int N, PairStrip strip, class... A>
inline void extend_pairs(const float* a, std::int64_t stride, const bf16* w, int blocks, bool fresh,
                         float* top, int merges, std::int64_t level, A&... ahead) {
  constexpr int kStep = strip == PairStrip::kByRows ? kPairBlock : kPairBlock * kTaskRows;
  for (int b = 0; b < blocks; ++b, a += kStep, w += kPairBlock * kPanel) {
    typename S::V even[R][N], odd[R][N];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) even[r][j] = odd[r][j] = S::zero();
    for (int k = 0; k < kPairBlock; k += 2) {
      if (k % Ahead<S>::kStep == 0) (ahead.fetch(), ...);
      typename S::V w_even[N], w_odd[N];
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) S::load_pairs(w + k * kPanel + 32 * j, w_even[j], w_odd[j]);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const typename S::V x_even = S::set1(strip_value<strip>(a, stride, r, k));
        const typename S::V x_odd = S::set1(strip_value<strip>(a, stride, r, k + 1));
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) {
          even[r][j] = S::fma(x_even, w_even[j], even[r][j]);
          odd[r][j] = S::fma(x_odd, w_odd[j], odd[r][j]);
        }
      }
    }
    const bool is_first = fresh && b == 0;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        float* sum = top + r * kPanel + 16 * j;
        S::store(sum, S::add(is_first ? S::zero() : S::load(sum), S::add(even[r][j], odd[r][j])));
      }
  }
  for (; merges > 0; --merges) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        float* sum = top + r * kPanel + 16 * j;
        S::store(sum - level, S::add(S::load(sum - level), S::load(sum)));
      }
    top -= level;
  }
}

// A block of n inputs from rows of a plain matrix, of which only the first `columns` columns are
// there, rounded to bf16, in pairs, with zeros beyond.
template <class S>
inline void fill_pair_block(bf16* block, const float* w, std::int64_t w_k, int n, int columns) {
  const auto load = [&](int k, int c) {
    const int lanes = columns - c < 16 ? columns - c : 16;
    return k < n && lanes > 0 ? S::load_n(w + k * w_k + c, lanes) : S::zero();
  };
  for (int k = 0; k < kPairBlock; k += 2)
    for (int c = 0; c < kPanel; c += 16)
      S::store_pairs(block + k * kPanel + 2 * c, load(k, c), load(k + 1, c));
}

// Weights of the n inputs of a leaf from k0 on, in whole blocks of pairs: where they are packed, or
// else brought into `strip`. n is what next_inputs() says: only the end of a leaf is no whole
// block.
template <class S>
inline const bf16* pair_weights(const ProductArgs& args, int panel, int leaf, int k0, int n,
                                int columns, bf16* strip) {
  const std::int64_t w_at = panel * args.w_panel + leaf * args.w_leaf;
  if (!args.w_is_bf16) {
    const float* weights = static_cast<const float*>(args.w) + w_at + k0 * args.w_k;
    for (int k = 0; k < n; k += kPairBlock)
      fill_pair_block<S>(strip + k * kPanel, weights + k * args.w_k, args.w_k, n - k, columns);
    return strip;
  }
  const bf16* weights = static_cast<const bf16*>(args.w) + w_at + std::int64_t{k0} * kPanel;
  if (n % kPairBlock == 0) return weights;
  const bool ends_panel =
      leaf * args.w_leaf + std::int64_t{k0 + n} * kPanel == std::int64_t{args.w_inputs} * kPanel;
  copy_last_block(strip, weights, n, ends_panel);
  return strip;
}

// Calls f.template operator()<R>(row) for blocks of at most S::kPairRows rows.
template <class S, class F>
inline void for_pair_rows(int rows, const F& f) {
  int row = 0;
  if constexpr (S::kPairRows >= 6) {
    for (; row + 6 <= rows; row += 6) f.template operator()<6>(row);
    for (; row + 4 <= rows; row += 4) f.template operator()<4>(row);
  }
  if constexpr (S::kPairRows >= 3)
    for (; row + 3 <= rows; row += 3) f.template operator()<3>(row);
  for (; row + 2 <= rows; row += 2) f.template operator()<2>(row);
  for (; row < rows; ++row) f.template operator()<1>(row);
}

// Vectors of columns of a block of R rows: as many chains as the latency of the processor asks for.
template <class S, int R>
constexpr int pair_vectors() {
  return R <= 2 ? S::kPairVectors * 2 : S::kPairVectors;
}

// strip (rows, stride): n inputs of each row, rounded to bf16, and zeros up to whole blocks.
template <class S>
inline void fill_rounded_rows(float* strip, int stride, const float* a, std::int64_t a_row, int n,
                              int rows) {
  const int whole = (n + kPairBlock - 1) / kPairBlock * kPairBlock;
  for (int r = 0; r < rows; ++r, a += a_row, strip += stride)
    for (int k = 0; k < whole; k += 16) {
      const int lanes = n - k < 0 ? 0 : (n - k < 16 ? n - k : 16);
      S::store(strip + k, S::round_to_bf16(S::load_n(a + k, lanes)));
    }
}

// strip (kPairWindow, kTaskRows) of a matrix A that is stored by k: rows stand side by side.
template <class S>
inline void fill_rounded_columns(float* strip, const float* a, std::int64_t a_k, int n, int rows) {
  const int whole = (n + kPairBlock - 1) / kPairBlock * kPairBlock;
  for (int k = 0; k < whole; ++k, a += a_k, strip += kTaskRows)
    for (int r = 0; r < rows; r += 16) {
      const int lanes = k >= n ? 0 : (rows - r < 16 ? rows - r : 16);
      S::store(strip + r, S::round_to_bf16(lanes == 0 ? S::zero() : S::load_n(a + r, lanes)));
    }
}

template <class S, PairStrip strip>
void pair_panel_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  alignas(64) float a_strip[kTaskRows * kPairWindow];
  alignas(64) bf16 w_strip[kPairWindow * kPanel];
  alignas(64) float stack[kMaxTreeDepth * kLeafRows * kPanel];
  const int rows = row_end - row_begin;
  const int columns =
      args.columns - panel * kPanel < kPanel ? args.columns - panel * kPanel : kPanel;
  const std::int64_t level = std::int64_t{rows} * kPanel;
  constexpr bool kByRows = strip == PairStrip::kByRows;
  const int window = kByRows && args.w_is_bf16 && rows <= kFewRows ? kFewRowsWindow : kPairWindow;
  if (args.accumulate) load_sums<S>(args, row_begin, rows, panel, stack);
  float* top = stack;
  for (int leaf = 0; leaf < args.leaves; ++leaf) {
    const float* a = args.a + row_begin * args.a_row + leaf * args.a_leaf;
    const int k_total = leaf + 1 == args.leaves ? args.last_leaf_k : args.leaf_k;
    const int merges = args.program == nullptr ? 0 : args.program[leaf];
    for (int k0 = 0, n = 0; k0 < k_total; k0 += n) {
      n = next_inputs(k_total - k0, window);
      const int blocks = (n + kPairBlock - 1) / kPairBlock;
      if constexpr (kByRows)
        fill_rounded_rows<S>(a_strip, window, a + k0, args.a_row, n, rows);
      else
        fill_rounded_columns<S>(a_strip, a + k0 * args.a_k, args.a_k, n, rows);
      const bf16* from = pair_weights<S>(args, panel, leaf, k0, n, columns, w_strip);
      const bool fresh = k0 == 0 && !args.accumulate, is_last = k0 + n == k_total;
      const auto extend = [&]<int R, int N>(int row, int c, auto&... ahead) {
        if (is_last && c == 0) prefetch_sums(args, row_begin + row, R, panel);
        extend_pairs<S, R, N, strip>(a_strip + row * (kByRows ? window : 1), window, from + 2 * c,
                                     blocks, fresh, top + row * kPanel + c, is_last ? merges : 0,
                                     level, ahead...);
      };
      if (rows <= kFewRows) {
        std::int64_t sweeps = 0;
        for_pair_rows<S>(rows, [&]<int R>(int) { sweeps += kPanel / 16 / pair_vectors<S, R>(); });
        const std::int64_t bytes =
            from == w_strip ? 0 : std::int64_t{n} * kPanel * static_cast<int>(sizeof(bf16));
        Ahead<S> ahead(from + std::int64_t{n} * kPanel, bytes,
                       sweeps * blocks * (kPairBlock / Ahead<S>::kStep));
        for_pair_rows<S>(rows, [&]<int R>(int row) {
          constexpr int N = pair_vectors<S, R>();
          for (int c = 0; c < columns; c += 16 * N) extend.template operator()<R, N>(row, c, ahead);
        });
      } else {
        constexpr int kStep = 16 * pair_vectors<S, 1>();
        for (int c = 0; c < columns; c += kStep)
          for_pair_rows<S>(rows, [&]<int R>(int row) {
            constexpr int N = pair_vectors<S, R>();
            for (int at = c; at < c + kStep && at < columns; at += 16 * N)
              extend.template operator()<R, N>(row, at);
          });
      }
    }
    top += (1 - merges) * level;
  }
  if (args.fixed != nullptr)
    add_fixed_sums<S>(args, row_begin, rows, panel, stack);
  else
    store_sums<S>(args, row_begin, rows, panel, stack);
}

// As product_task(). Packed weights are in pairs (PairPanel.hpp).
template <class S>
void pair_product_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  args.a_k == 1 ? pair_panel_task<S, PairStrip::kByRows>(args, row_begin, row_end, panel)
                : pair_panel_task<S, PairStrip::kByInputs>(args, row_begin, row_end, panel);
}

}  // namespace taper::detail
