// SPDX-License-Identifier: Apache-2.0
//
// Products of Arithmetic::kBf16Dot (canonical/dot_chain.hpp): as in f32 arithmetic, with a pair of
// inputs in place of each. What is not a template over the set S is static (host_ops.inl.hpp).
#pragma once

#include <cstdint>

#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/paired_operands.inl.hpp"

namespace taper::detail {

template <class S>
void round_pairs(Bf16Pair* to, std::int64_t width, const float* from, std::int64_t step, int n,
                 int columns) {
  fill_pairs<S>(to, width, static_cast<int>(width), from, step, n, n, columns);
}

// The operands of a task, some pairs of inputs at a time. Inputs that the task rounds itself lie in
// a strip, row by row if A does, else pair by pair, kTaskRows apart.
template <class Set, InputOrder order>
class DotOperands {
  static constexpr bool kByRows = order == InputOrder::kByRows;

 public:
  using S = Set;
  static constexpr bool kAheadOfManyRows = true;
  static constexpr int kMostRows = S::kDotRows;
  static constexpr int kColumnStep = S::kDotVectors;
  template <int R>
  static constexpr int kVectors = block_vectors<S::kDotVectors, R>();

  explicit DotOperands(const TaskPart& part) : part_(part) {
    if (part.args.rounded != nullptr) stride_ = rounded_pairs(part, order, 0, 0).stride;
  }

  int take(int leaf, int k, int left) {
    // Whole pairs; the last of an odd number of inputs alone.
    const int n = left == 1 ? 1 : (left < kPairWindow ? left : kPairWindow) / 2 * 2;
    pairs_ = (n + 1) / 2;
    if (part_.args.rounded != nullptr)
      a_ = rounded_pairs(part_, order, leaf, k).begin;
    else if constexpr (kByRows)
      for (int r = 0; r < part_.rows; ++r)
        round_values<S>(reinterpret_cast<bf16*>(a_strip_ + r * (kPairWindow / 2)),
                        part_.a(leaf, k) + r * part_.args.a_row, n);
    else
      fill_pairs<S>(a_strip_, kTaskRows, part_.rows, part_.a(leaf, k), part_.args.a_k, n, n,
                    part_.rows);
    w_ = pair_weights<S>(part_, leaf, k, n, 2, w_strip_);
    return n;
  }

  NextWeights next_weights() const { return weights_after(w_, pairs_, w_strip_); }

  template <int R, int N, class... Next>
  void extend(int row, int c, bool fresh, float* top, int merges, std::int64_t level,
              Next&... ahead) const {
    const std::int64_t a_row = kByRows ? stride_ : 1, a_k = kByRows ? 1 : stride_;
    extend_block<S, R, N>(a_ + row * a_row, a_row, a_k, w_ + c, pairs_, fresh, top, merges, level,
                          ahead...);
  }

 private:
  TaskPart part_;
  int pairs_ = 0;
  std::int64_t stride_ = kByRows ? kPairWindow / 2 : kTaskRows;  // of pairs, by rows or by inputs
  const Bf16Pair* a_ = a_strip_;
  const Bf16Pair* w_ = nullptr;
  alignas(64) Bf16Pair a_strip_[kTaskRows * kPairWindow / 2];
  alignas(64) Bf16Pair w_strip_[kPairWindow / 2 * kPanel];
};

// As product_task(). Packed weights are in pairs (PairPanel.hpp).
template <class S>
void dot_product_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  order_of(args) == InputOrder::kByRows
      ? panel_task<DotOperands<S, InputOrder::kByRows>>(args, row_begin, row_end, panel)
      : panel_task<DotOperands<S, InputOrder::kByInputs>>(args, row_begin, row_end, panel);
}

template <class S>
constexpr PairOps make_pair_ops() {
  return {dot_product_task<S>, round_values<S>, round_pairs<S>};
}

}  // namespace taper::detail
