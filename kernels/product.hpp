// SPDX-License-Identifier: Apache-2.0
//
// Products with packed weights. Every output element is one chain over ascending k within a leaf
// (of fused multiply-adds, or as the arithmetic of the execution space has it), so its bits do not
// depend on the other rows, on threads, or on how columns are sharded.
#pragma once

#include <cstdint>

#include "base/Bf16.hpp"
#include "kernels/Views.hpp"
#include "kernels/detail/Product.hpp"
#include "kernels/gradient.hpp"

namespace taper {

enum class WeightType { kF32, kBf16 };
constexpr std::int64_t bytes_of(WeightType type) {
  return type == WeightType::kBf16 ? 2 : 4;
}

inline constexpr int kPanelColumns = detail::kPanel;
constexpr int round_up(int n, int multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Weights as panels of 64 output columns: column 64 p + c of input k stands at data[p *
// panel_stride + k * 64 + c]; on the host in an arithmetic that rounds operands, which takes bf16
// weights only, in pairs of inputs (detail/PairPanel.hpp).
struct PackedMatrix {
  const void* data = nullptr;
  WeightType type = WeightType::kF32;
  int columns = 0;  // the last panel is padded with zero weights
  int k = 0;
  std::int64_t panel_stride = 0;  // elements

  // Output columns [begin, end), multiples of 64: a view.
  PackedMatrix column_slice(int begin, int end) const;
  // Inputs [begin, end): a view. In pairs, begin is even, and so is end unless it is k.
  PackedMatrix k_slice(int begin, int end) const;
};

// Floats of the memory of Rounding for activations (rows, k), and for the operands (rows, n) and
// (rows, m) of a gradient of weights. The host keeps the latter as pairs of rows, with room between
// columns.
constexpr std::int64_t rounded_rows_floats(std::int64_t rows, std::int64_t k) {
  return rows * k / 2;
}
constexpr std::int64_t rounded_outer_floats(std::int64_t rows, std::int64_t n, std::int64_t m) {
  if (!kOnHost) return rows * (n + m) / 2;
  constexpr std::int64_t kRoom = 2 * kPanelColumns;
  return (rows + 1) / 2 * (n + m + kRoom);
}

// How the inputs of a row-parallel product are cut into leaves and in which order leaf sums are
// added (see shard/ReductionTree.hpp for the program). Leaf l reads x columns [l * x_stride, l *
// x_stride + size) and inputs k from l * x_stride on; sizes are leaf_k, the last one last_leaf_k. x
// and the weights may end with the last leaf's inputs.
struct LeafOrder {
  int leaves = 0;
  int x_stride = 0;
  int leaf_k = 0;
  int last_leaf_k = 0;
  const int* program = nullptr;  // (leaves) additions after each leaf
  int partials = 1;
};

// y = x W (+ bias): y (rows, w.columns), x (rows, w.k), bias (w.columns) or empty.
template <class E>
void multiply(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
              const PackedMatrix& w, VectorView<const float, E> bias = {});

// Partial sums of y = x W over the leaves of this shard: y (partials * rows, w.columns),
// partial-major; x (rows, w.k).
template <class E>
void multiply_leaves(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> x,
                     const PackedMatrix& w, const LeafOrder& leaves);

// gradient += a^T b: gradient (n, m), a (rows, n), b (rows, m); each element is a chain over
// ascending rows.
template <class E>
void accumulate_outer(const E& exec, const GradientView& gradient, MatrixView<const float, E> a,
                      MatrixView<const float, E> b);

enum class PackOrder {
  kRowsAreColumns,  // stored (columns, k): output columns are the stored rows
  kRowsAreInputs,   // stored (k, columns)
};

// Packs `stored` (rows, row-major, T = float or bf16) into panels at `packed`, converting to
// `type`. Output columns are padded with zeros: `packed` has room for round_up(columns, 64) * k
// elements.
template <class E, class T>
void pack_panels(const E& exec, void* packed, WeightType type, MatrixView<const T, E> stored,
                 PackOrder order);

}  // namespace taper
