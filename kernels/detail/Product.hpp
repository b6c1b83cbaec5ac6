// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/Bf16.hpp"
#include "base/Fixed.hpp"

namespace taper::detail {

inline constexpr int kPanel = 64;         // output columns per panel of packed weights
inline constexpr int kTaskRows = 96;      // most rows per task of a product
inline constexpr int kLeafRows = 48;      // ... of one with leaves
inline constexpr int kMaxTreeDepth = 24;  // partial sums that may wait while leaves are added

static constexpr int quotient_up(int n, int divisor) {
  return (n + divisor - 1) / divisor;
}

// y = A * W by panels of 64 columns. Every output element is one chain of fused multiply-adds over
// ascending k within a leaf; if there is a program, leaf sums are added in the order of a
// ReductionTree and the remaining partial sums are stored one after another.
struct ProductArgs {
  // A: element (row, leaf, k) at a[row * a_row + leaf * a_leaf + k * a_k]; a_row or a_k is 1.
  const float* a = nullptr;
  std::int64_t a_row = 0, a_leaf = 0, a_k = 1;
  // W: 64 columns of (panel, leaf, k) start at w + panel * w_panel + leaf * w_leaf + k * w_k, in
  // elements.
  const void* w = nullptr;
  bool w_is_bf16 = false;
  std::int64_t w_panel = 0, w_leaf = 0, w_k = kPanel;
  int w_inputs = 0;  // of all leaves, if packed
  int leaves = 1;
  int leaf_k = 0;                // length of a leaf
  int last_leaf_k = 0;           // length of the last one
  const int* program = nullptr;  // additions after each leaf; null: one leaf, no tree
  int partials = 1;
  // Y: element (partial, row, column) at y[partial * y_partial + row * y_row + column].
  float* y = nullptr;
  std::int64_t y_row = 0, y_partial = 0;
  const float* bias = nullptr;  // (columns), added after the chain; null: none
  bool accumulate = false;      // the chain starts from y instead of zero (one leaf only)
  Fixed* fixed = nullptr;       // where sums are added instead of being stored in y, (row, column)
  // Of fused.hpp, on devices only: what is added to the one partial sum, element (row, column) like
  // that of y; where SwiGLU of gate and up columns goes, (rows, columns / 2).
  const float* residual = nullptr;
  float* act = nullptr;
  // On the host: A rounded to bf16 before, where products keep it (Rounding); null: it is rounded
  // as it is read. If pair_stride is 0, the elements stand as in A; else as pairs of inputs, of all
  // rows side by side, pair_stride apart, with room for 15 rows more behind the last ones.
  const bf16* rounded = nullptr;
  std::int64_t pair_stride = 0;
  int rows = 0;
  int columns = 0;
};

}  // namespace taper::detail
