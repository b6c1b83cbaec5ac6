// SPDX-License-Identifier: Apache-2.0
//
// Products of Arithmetic::kBf16Dot (canonical/dot_chain.hpp): as in f32 arithmetic, with a pair of
// inputs in place of each. What is not a template over the set S is static (host_ops.inl.hpp).
#pragma once

#include <cstdint>

#include "kernels/detail/pair_product.inl.hpp"

namespace taper::detail {

// strip (rows, stride): n inputs of each row, rounded to bf16, and zeros up to whole pairs.
template <class S>
inline void fill_rounded_pairs(Bf16Pair* strip, int stride, const float* a, std::int64_t a_row,
                               int n, int rows) {
  for (int r = 0; r < rows; ++r, a += a_row, strip += stride) {
    bf16* inputs = reinterpret_cast<bf16*>(strip);
    int k = 0;
    for (; k + 32 <= n; k += 32) S::store_rounded(inputs + k, S::load(a + k), S::load(a + k + 16));
    if (k < n) {
      const int lower = n - k < 16 ? n - k : 16;
      S::store_rounded(inputs + k, S::load_n(a + k, lower),
                       S::load_n(a + k + lower, n - k - lower));
    }
  }
}

// The operands of a task, some pairs of inputs at a time. Rounded inputs lie row by row if A does,
// else pair by pair, kTaskRows apart.
template <class Set, PairStrip strip>
class DotOperands {
  static constexpr bool kByRows = strip == PairStrip::kByRows;

 public:
  using S = Set;
  static constexpr bool kAsksAhead = true;
  static constexpr int kMostRows = S::kDotRows;
  static constexpr int kColumnStep = S::kDotVectors;
  template <int R>
  static constexpr int kVectors = block_vectors<S::kDotVectors, R>();

  explicit DotOperands(const TaskPart& part) : part_(part) {}

  int take(int leaf, int k, int left) {
    // Whole pairs; the last of an odd number of inputs alone.
    const int n = left == 1 ? 1 : (left < kPairWindow ? left : kPairWindow) / 2 * 2;
    pairs_ = (n + 1) / 2;
    if constexpr (kByRows)
      fill_rounded_pairs<S>(a_strip_, kPairWindow / 2, part_.a(leaf, k), part_.args.a_row, n,
                            part_.rows);
    else
      fill_pairs<S>(a_strip_, kTaskRows, part_.rows, part_.a(leaf, k), part_.args.a_k, n, n,
                    part_.rows);
    w_ = pair_weights<S>(part_, leaf, k, n, 2, w_strip_);
    return n;
  }

  NextWeights next_weights() const {
    const bool is_packed = w_ != w_strip_;
    return {w_ + pairs_ * kPanel,
            is_packed ? pairs_ * kPanel * static_cast<int>(sizeof(Bf16Pair)) : 0, pairs_};
  }

  template <int R, int N, class... Next>
  void extend(int row, int c, bool fresh, float* top, int merges, std::int64_t level,
              Next&... ahead) const {
    constexpr int a_row = kByRows ? kPairWindow / 2 : 1, a_k = kByRows ? 1 : kTaskRows;
    extend_block<S, R, N>(a_strip_ + row * a_row, a_row, a_k, w_ + c, pairs_, fresh, top, merges,
                          level, ahead...);
  }

 private:
  TaskPart part_;
  int pairs_ = 0;
  const Bf16Pair* w_ = nullptr;
  alignas(64) Bf16Pair a_strip_[kTaskRows * kPairWindow / 2];
  alignas(64) Bf16Pair w_strip_[kPairWindow / 2 * kPanel];
};

// As product_task(). Packed weights are in pairs (PairPanel.hpp).
template <class S>
void dot_product_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  args.a_k == 1 ? panel_task<DotOperands<S, PairStrip::kByRows>>(args, row_begin, row_end, panel)
                : panel_task<DotOperands<S, PairStrip::kByInputs>>(args, row_begin, row_end, panel);
}

}  // namespace taper::detail
