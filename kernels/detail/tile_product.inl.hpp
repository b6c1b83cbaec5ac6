// SPDX-License-Identifier: Apache-2.0
//
// Products of Arithmetic::kBf16 by vector units: the sums of tile units (canonical/tile_chain.hpp)
// in two chains. What is not a template over the set S is static (host_ops.inl.hpp).
#pragma once

#include <cstdint>

#include "kernels/detail/paired_operands.inl.hpp"

namespace taper::detail {

template <InputOrder order>
inline float strip_value(const float* a, std::int64_t stride, int r, int k) {
  return order == InputOrder::kByRows ? a[r * stride + k] : a[k * kTaskRows + r];
}

// Extends the sums of R rows x N vectors of columns by so many blocks. They wait in `top`, rows 64
// apart: registers hold the two chains of each. Merges are those of extend_block().
template <class S, int R, int N, InputOrder order, class... A>
inline void extend_chain_pairs(const float* a, std::int64_t stride, const Bf16Pair* w, int blocks,
                               bool fresh, float* top, int merges, std::int64_t level,
                               A&... ahead) {
  constexpr int kStep = order == InputOrder::kByRows ? kTileInputs : kTileInputs * kTaskRows;
  for (int b = 0; b < blocks; ++b, a += kStep, w += kTileInputs / 2 * kPanel) {
    typename S::V even[R][N], odd[R][N];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) even[r][j] = odd[r][j] = S::zero();
    for (int k = 0; k < kTileInputs; k += 2) {
      (ahead.fetch(), ...);
      typename S::Pairs column[N];
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) column[j] = S::load(w + k / 2 * kPanel + 16 * j);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const typename S::V x_even = S::set1(strip_value<order>(a, stride, r, k));
        const typename S::V x_odd = S::set1(strip_value<order>(a, stride, r, k + 1));
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) {
          even[r][j] = S::fma(x_even, column[j].first, even[r][j]);
          odd[r][j] = S::fma(x_odd, column[j].second, odd[r][j]);
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

// strip (rows, stride): n inputs of each row, rounded to bf16, and zeros up to whole blocks.
template <class S>
inline void fill_rounded_rows(float* strip, int stride, const float* a, std::int64_t a_row, int n,
                              int rows) {
  const int whole = in_blocks(n) * kTileInputs;
  for (int r = 0; r < rows; ++r, a += a_row, strip += stride)
    for (int k = 0; k < whole; k += 16) {
      const int lanes = n - k < 0 ? 0 : (n - k < 16 ? n - k : 16);
      S::store(strip + k, S::to_operands(S::load_n(a + k, lanes)));
    }
}

// strip (kPairWindow, kTaskRows) of a matrix A that is stored by k: rows stand side by side.
template <class S>
inline void fill_rounded_columns(float* strip, const float* a, std::int64_t a_k, int n, int rows) {
  const int whole = in_blocks(n) * kTileInputs;
  for (int k = 0; k < whole; ++k, a += a_k, strip += kTaskRows)
    for (int r = 0; r < rows; r += 16) {
      const int lanes = k >= n ? 0 : (rows - r < 16 ? rows - r : 16);
      S::store(strip + r, S::to_operands(lanes == 0 ? S::zero() : S::load_n(a + r, lanes)));
    }
}

// The same two from what was rounded before.
template <class S>
inline void widen_rows(float* strip, int stride, RoundedPairs from, int n, int rows) {
  for (int r = 0; r < rows; ++r, from.begin += from.stride, strip += stride) {
    const auto* const inputs = reinterpret_cast<const bf16*>(from.begin);
    int k = 0;
    for (; k + 16 <= n; k += 16) S::store(strip + k, S::load(inputs + k));
    for (; k < n; ++k) strip[k] = to_float(inputs[k]);
    for (; k < in_blocks(n) * kTileInputs; ++k) strip[k] = 0.0f;
  }
}
template <class S>
inline void widen_columns(float* strip, RoundedPairs from, int n, int rows) {
  const int whole = in_blocks(n) * kTileInputs;
  for (int k = 0; k < whole; k += 2, from.begin += from.stride, strip += 2 * kTaskRows)
    for (int r = 0; r < rows; r += 16) {
      typename S::Pairs pairs{S::zero(), S::zero()};
      if (k < n) pairs = S::load(from.begin + r);
      S::store(strip + r, pairs.first);
      S::store(strip + kTaskRows + r, pairs.second);
    }
}

// The operands of a task in Arithmetic::kBf16, some values of k of them at a time.
template <class Set, InputOrder order>
class TileOperands {
  static constexpr bool kByRows = order == InputOrder::kByRows;

 public:
  using S = Set;
  static constexpr bool kAheadOfManyRows = true;
  static constexpr int kMostRows = S::kBf16Rows;
  // As many chains as the latency of the processor asks for.
  template <int R>
  static constexpr int kVectors = R <= 2 ? S::kBf16Vectors * 2 : S::kBf16Vectors;
  static constexpr int kColumnStep = kVectors<1>;

  explicit TileOperands(const TaskPart& part) : part_(part) {}

  int take(int leaf, int k, int left) {
    const int n = next_inputs(left, kPairWindow);
    blocks_ = in_blocks(n);
    if (part_.args.rounded != nullptr) {
      const RoundedPairs from = rounded_pairs(part_, order, leaf, k);
      if constexpr (kByRows)
        widen_rows<S>(a_strip_, kPairWindow, from, n, part_.rows);
      else
        widen_columns<S>(a_strip_, from, n, part_.rows);
    } else if constexpr (kByRows) {
      fill_rounded_rows<S>(a_strip_, kPairWindow, part_.a(leaf, k), part_.args.a_row, n,
                           part_.rows);
    } else {
      fill_rounded_columns<S>(a_strip_, part_.a(leaf, k), part_.args.a_k, n, part_.rows);
    }
    w_ = pair_weights<S>(part_, leaf, k, n, kTileInputs, w_strip_);
    return n;
  }

  NextWeights next_weights() const {
    return weights_after(w_, blocks_ * kTileInputs / 2, w_strip_);
  }

  template <int R, int N, class... Next>
  void extend(int row, int c, bool fresh, float* top, int merges, std::int64_t level,
              Next&... ahead) const {
    extend_chain_pairs<S, R, N, order>(a_strip_ + row * (kByRows ? kPairWindow : 1), kPairWindow,
                                       w_ + c, blocks_, fresh, top, merges, level, ahead...);
  }

 private:
  TaskPart part_;
  int blocks_ = 0;
  const Bf16Pair* w_ = nullptr;
  alignas(64) float a_strip_[kTaskRows * kPairWindow];
  alignas(64) Bf16Pair w_strip_[kPairWindow / 2 * kPanel];
};

// As product_task(). Packed weights are in pairs (PairPanel.hpp).
template <class S>
void tile_product_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  order_of(args) == InputOrder::kByRows
      ? panel_task<TileOperands<S, InputOrder::kByRows>>(args, row_begin, row_end, panel)
      : panel_task<TileOperands<S, InputOrder::kByInputs>>(args, row_begin, row_end, panel);
}

}  // namespace taper::detail
