// SPDX-License-Identifier: Apache-2.0
//
// Products for any execution space, in the order of canonical/product.hpp: a thread computes one
// column of some rows, each element as one chain of fused multiply-adds.
#pragma once

#include "base/Bf16.hpp"
#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/DeviceMath.hpp"
#include "kernels/detail/Product.hpp"
#include "kernels/detail/product_args.hpp"
#include "kernels/product.hpp"

namespace taper::detail {

inline constexpr int kDeviceRows = 8;  // of a thread: each weight is loaded once for them

// Adds a leaf to the chains of `rows` rows; rows beyond compute on the last one.
template <class W>
KOKKOS_INLINE_FUNCTION void add_leaf(float* sums, const ProductArgs& args, const W* w, int row0,
                                     int rows, int leaf, int n) {
  const float* a[kDeviceRows];
  for (int r = 0; r < kDeviceRows; ++r)
    a[r] = args.a + (row0 + (r < rows ? r : rows - 1)) * args.a_row + leaf * args.a_leaf;
  for (int k = 0; k < n; ++k) {
    const float value = to_float(w[k * args.w_k]);
    for (int r = 0; r < kDeviceRows; ++r) sums[r] = Kokkos::fma(a[r][k * args.a_k], value, sums[r]);
  }
}

// Leaf sums on a stack that program[leaf] additions shorten; what is left are the partial sums.
template <class W>
KOKKOS_INLINE_FUNCTION void add_leaves(const ProductArgs& args, const W* w, int row0, int rows,
                                       int column) {
  float stack[kMaxTreeDepth][kDeviceRows];
  int depth = 0;
  for (int leaf = 0; leaf < args.leaves; ++leaf) {
    float sums[kDeviceRows] = {};
    add_leaf(sums, args, w + leaf * args.w_leaf, row0, rows, leaf,
             leaf + 1 == args.leaves ? args.last_leaf_k : args.leaf_k);
    for (int n = args.program[leaf]; n > 0; --n) {
      --depth;
      for (int r = 0; r < kDeviceRows; ++r) sums[r] = stack[depth][r] + sums[r];
    }
    for (int r = 0; r < kDeviceRows; ++r) stack[depth][r] = sums[r];
    ++depth;
  }
  for (int p = 0; p < depth; ++p)
    for (int r = 0; r < rows; ++r)
      args.y[p * args.y_partial + (row0 + r) * args.y_row + column] = stack[p][r];
}

template <class W>
KOKKOS_INLINE_FUNCTION void multiply_column(const ProductArgs& args, int row0, int column) {
  const int rows = args.rows - row0 < kDeviceRows ? args.rows - row0 : kDeviceRows;
  const W* w = static_cast<const W*>(args.w) + column / kPanel * args.w_panel + column % kPanel;
  if (args.program != nullptr) {
    add_leaves(args, w, row0, rows, column);
    return;
  }
  float sums[kDeviceRows] = {};
  if (args.accumulate)
    for (int r = 0; r < rows; ++r) sums[r] = args.y[(row0 + r) * args.y_row + column];
  add_leaf(sums, args, w, row0, rows, 0, args.last_leaf_k);
  for (int r = 0; r < rows; ++r) {
    const std::int64_t at = (row0 + r) * args.y_row + column;
    if (args.fixed != nullptr)
      args.fixed[at] += to_fixed(sums[r]);
    else
      args.y[at] = args.bias == nullptr ? sums[r] : sums[r] + args.bias[column];
  }
}

template <class E>
void device_product(const char* label, const E& exec, const ProductArgs& args) {
  const std::int64_t columns = args.columns, chunks = (args.rows + kDeviceRows - 1) / kDeviceRows;
  device_for_each(
      label, exec, chunks * columns, KOKKOS_LAMBDA(const std::int64_t i) {
        const int row0 = static_cast<int>(i / columns) * kDeviceRows;
        const int column = static_cast<int>(i % columns);
        if (args.w_is_bf16)
          multiply_column<bf16>(args, row0, column);
        else
          multiply_column<float>(args, row0, column);
      });
}

// Element (k, column) of a packed matrix from the stored one; columns beyond are zero. A thread has
// eight inputs of a column: both sides move whole sectors of memory.
template <class E, class T>
void device_pack_panels(const E& exec, void* packed, WeightType type, const StoredMatrix<T>& s) {
  constexpr int kInputs = 8;
  const int panels = (s.columns + kPanel - 1) / kPanel, parts = (s.k + kInputs - 1) / kInputs;
  const bool is_bf16 = type == WeightType::kBf16;
  bool by_quads = false;
  if constexpr (std::is_same_v<T, float>)
    by_quads = s.k_step == 1 && s.k % kInputs == 0 && is_of_quads(s.data, s.column_step);
  device_for_each(
      "taper::pack_panels", exec, std::int64_t{panels} * parts * kPanel,
      KOKKOS_LAMBDA(const std::int64_t i) {
        const int line = static_cast<int>(i / kPanel), panel = line / parts,
                  first = line % parts * kInputs,
                  last = first + kInputs < s.k ? first + kInputs : s.k;
        const std::int64_t column = std::int64_t{panel} * kPanel + i % kPanel;
        // All are read before one is written: nothing else hides the time that memory takes.
        float values[kInputs] = {};
        if (by_quads && column < s.columns) {
          const auto* from = reinterpret_cast<const Quad*>(s.data + column * s.column_step + first);
          const Quad quads[] = {from[0], from[1]};
          for (int j = 0; j < kInputs; ++j) values[j] = quads[j / 4].values[j % 4];
        } else if (column < s.columns) {
          for (int j = 0; j < last - first; ++j)
            values[j] = to_float(s.data[column * s.column_step + (first + j) * s.k_step]);
        }
        std::int64_t to = (std::int64_t{panel} * s.k + first) * kPanel + i % kPanel;
        for (int j = 0; j < last - first; ++j, to += kPanel) {
          if (is_bf16)
            static_cast<bf16*>(packed)[to] = to_bf16(values[j]);
          else
            static_cast<float*>(packed)[to] = values[j];
        }
      });
}

}  // namespace taper::detail
