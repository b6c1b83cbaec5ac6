// SPDX-License-Identifier: Apache-2.0
//
// Products of Arithmetic::kBf16 by vector units (canonical/pair_chain.hpp). What is not a template
// over the set S is static (host_ops.inl.hpp).
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/detail/PairPanel.hpp"
#include "kernels/detail/product.inl.hpp"

namespace taper::detail {

// Inputs that all rows of a task share before the next ones are read: their weights, 24 KiB, stay
// in the first-level cache while rows pass by.
inline constexpr int kPairWindow = 192;
static_assert(kPairWindow % kPairBlock == 0);

// How rounded inputs of rows lie: row by row, `stride` apart, or input by input, kTaskRows apart.
enum class PairStrip { kByRows, kByInputs };
static inline PairStrip strip_of(const ProductArgs& args) {
  return args.a_k == 1 && args.pair_stride == 0 ? PairStrip::kByRows : PairStrip::kByInputs;
}

// Where the inputs of a task from k on stand that were rounded before (ProductArgs::rounded), and
// how many pairs from one row or pair of inputs to the next.
struct RoundedPairs {
  const Bf16Pair* begin;
  std::int64_t stride;
};
static inline RoundedPairs rounded_pairs(const TaskPart& part, PairStrip strip, int leaf, int k) {
  const ProductArgs& args = part.args;
  const auto* const pairs = reinterpret_cast<const Bf16Pair*>(args.rounded);
  if (strip == PairStrip::kByRows)
    return {pairs + (part.row_begin * args.a_row + leaf * args.a_leaf + k) / 2, args.a_row / 2};
  return {pairs + k / 2 * args.pair_stride + part.row_begin, args.pair_stride};
}

// n values, rounded to bf16, and a zero if that makes whole pairs.
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

template <PairStrip strip>
inline float strip_value(const float* a, std::int64_t stride, int r, int k) {
  return strip == PairStrip::kByRows ? a[r * stride + k] : a[k * kTaskRows + r];
}

// Extends the sums of R rows x N vectors of columns by so many blocks. They wait in `top`, rows 64
// apart: registers hold the two chains of each. Merges are those of extend_block().
template <class S, int R, int N, PairStrip strip, class... A>
inline void extend_pairs(const float* a, std::int64_t stride, const Bf16Pair* w, int blocks,
                         bool fresh, float* top, int merges, std::int64_t level, A&... ahead) {
  constexpr int kStep = strip == PairStrip::kByRows ? kPairBlock : kPairBlock * kTaskRows;
  for (int b = 0; b < blocks; ++b, a += kStep, w += kPairBlock / 2 * kPanel) {
    typename S::V even[R][N], odd[R][N];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) even[r][j] = odd[r][j] = S::zero();
    for (int k = 0; k < kPairBlock; k += 2) {
      (ahead.fetch(), ...);
      typename S::Pairs column[N];
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) column[j] = S::load(w + k / 2 * kPanel + 16 * j);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const typename S::V x_even = S::set1(strip_value<strip>(a, stride, r, k));
        const typename S::V x_odd = S::set1(strip_value<strip>(a, stride, r, k + 1));
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

static constexpr int in_blocks(int inputs) {
  return quotient_up(inputs, kPairBlock);
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

// strip (rows, stride): n inputs of each row, rounded to bf16, and zeros up to whole blocks.
template <class S>
inline void fill_rounded_rows(float* strip, int stride, const float* a, std::int64_t a_row, int n,
                              int rows) {
  const int whole = in_blocks(n) * kPairBlock;
  for (int r = 0; r < rows; ++r, a += a_row, strip += stride)
    for (int k = 0; k < whole; k += 16) {
      const int lanes = n - k < 0 ? 0 : (n - k < 16 ? n - k : 16);
      S::store(strip + k, S::round_to_bf16(S::load_n(a + k, lanes)));
    }
}

// strip (kPairWindow, kTaskRows) of a matrix A that is stored by k: rows stand side by side.
template <class S>
inline void fill_rounded_columns(float* strip, const float* a, std::int64_t a_k, int n, int rows) {
  const int whole = in_blocks(n) * kPairBlock;
  for (int k = 0; k < whole; ++k, a += a_k, strip += kTaskRows)
    for (int r = 0; r < rows; r += 16) {
      const int lanes = k >= n ? 0 : (rows - r < 16 ? rows - r : 16);
      S::store(strip + r, S::round_to_bf16(lanes == 0 ? S::zero() : S::load_n(a + r, lanes)));
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
    for (; k < in_blocks(n) * kPairBlock; ++k) strip[k] = 0.0f;
  }
}
template <class S>
inline void widen_columns(float* strip, RoundedPairs from, int n, int rows) {
  const int whole = in_blocks(n) * kPairBlock;
  for (int k = 0; k < whole; k += 2, from.begin += from.stride, strip += 2 * kTaskRows)
    for (int r = 0; r < rows; r += 16) {
      typename S::Pairs pairs{S::zero(), S::zero()};
      if (k < n) pairs = S::load(from.begin + r);
      S::store(strip + r, pairs.first);
      S::store(strip + kTaskRows + r, pairs.second);
    }
}

// The operands of a task in Arithmetic::kBf16, some values of k of them at a time.
template <class Set, PairStrip strip>
class PairOperands {
  static constexpr bool kByRows = strip == PairStrip::kByRows;

 public:
  using S = Set;
  static constexpr bool kAheadOfManyRows = true;
  static constexpr int kMostRows = S::kPairRows;
  // As many chains as the latency of the processor asks for.
  template <int R>
  static constexpr int kVectors = R <= 2 ? S::kPairVectors * 2 : S::kPairVectors;
  static constexpr int kColumnStep = kVectors<1>;

  explicit PairOperands(const TaskPart& part) : part_(part) {}

  int take(int leaf, int k, int left) {
    const int n = next_inputs(left, kPairWindow);
    blocks_ = in_blocks(n);
    if (part_.args.rounded != nullptr) {
      const RoundedPairs from = rounded_pairs(part_, strip, leaf, k);
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
    w_ = pair_weights<S>(part_, leaf, k, n, kPairBlock, w_strip_);
    return n;
  }

  NextWeights next_weights() const { return weights_after(w_, blocks_ * kPairBlock / 2, w_strip_); }

  template <int R, int N, class... Next>
  void extend(int row, int c, bool fresh, float* top, int merges, std::int64_t level,
              Next&... ahead) const {
    extend_pairs<S, R, N, strip>(a_strip_ + row * (kByRows ? kPairWindow : 1), kPairWindow, w_ + c,
                                 blocks_, fresh, top, merges, level, ahead...);
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
void pair_product_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  strip_of(args) == PairStrip::kByRows
      ? panel_task<PairOperands<S, PairStrip::kByRows>>(args, row_begin, row_end, panel)
      : panel_task<PairOperands<S, PairStrip::kByInputs>>(args, row_begin, row_end, panel);
}

}  // namespace taper::detail
