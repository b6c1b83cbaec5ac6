// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a product from those of its launcher, the same on the host and on a device.
#pragma once

#include "base/Error.hpp"
#include "kernels/detail/Product.hpp"
#include "kernels/product.hpp"

namespace taper::detail {

inline ProductArgs weight_args(const PackedMatrix& w) {
  ProductArgs args;
  args.w = w.data;
  args.w_is_bf16 = w.type == WeightType::kBf16;
  args.w_panel = w.panel_stride;
  args.w_inputs = w.k;
  args.columns = w.columns;
  args.leaf_k = args.last_leaf_k = w.k;
  return args;
}

// y = x W, all inputs in one leaf.
template <class Y, class X>
ProductArgs multiply_args(const Y& y, const X& x, const PackedMatrix& w,
                          const float* bias = nullptr) {
  TAPER_EXPECT(y.extent_int(0) == x.extent_int(0) && y.extent_int(1) == w.columns &&
               x.extent_int(1) == w.k);
  ProductArgs args = weight_args(w);
  args.a = x.data();
  args.a_row = x.extent(1);
  args.y = y.data();
  args.y_row = y.extent(1);
  args.rows = y.extent_int(0);
  args.bias = bias;
  return args;
}

template <class Y, class X>
ProductArgs multiply_leaves_args(const Y& y, const X& x, const PackedMatrix& w,
                                 const LeafOrder& leaves) {
  const int rows = x.extent_int(0);
  TAPER_EXPECT(y.extent_int(0) == leaves.partials * rows && y.extent_int(1) == w.columns);
  const int last = (leaves.leaves - 1) * leaves.x_stride;  // where the last leaf begins
  TAPER_EXPECT(x.extent_int(1) == w.k && last + leaves.last_leaf_k <= w.k &&
               w.k <= last + leaves.x_stride);
  ProductArgs args = weight_args(w);
  args.a = x.data();
  args.a_row = x.extent(1);
  args.a_leaf = leaves.x_stride;
  args.w_leaf = std::int64_t{leaves.x_stride} * kPanelColumns;
  args.leaves = leaves.leaves;
  args.leaf_k = leaves.leaf_k;
  args.last_leaf_k = leaves.last_leaf_k;
  args.program = leaves.program;
  args.partials = leaves.partials;
  args.y = y.data();
  args.y_row = y.extent(1);
  args.y_partial = static_cast<std::int64_t>(rows) * y.extent(1);
  args.rows = rows;
  return args;
}

// gradient += a^T b: the rows of a and b are the inputs of the chains.
template <class A, class B>
ProductArgs accumulate_outer_args(const GradientView& gradient, const A& a, const B& b) {
  TAPER_EXPECT(a.extent(0) == b.extent(0) && gradient.rows == a.extent_int(1) &&
               gradient.columns == b.extent_int(1));
  ProductArgs args;
  args.a = a.data();
  args.a_row = 1;
  args.a_k = a.extent(1);
  args.w = b.data();
  args.w_panel = kPanelColumns;
  args.w_k = b.extent(1);
  args.leaf_k = args.last_leaf_k = a.extent_int(0);
  args.y = gradient.f32();
  args.fixed = gradient.fixed();
  args.y_row = gradient.columns;
  args.accumulate = !gradient.is_fixed();
  args.rows = a.extent_int(1);
  args.columns = b.extent_int(1);
  return args;
}

// A stored matrix as (columns, k) with any strides.
template <class T>
struct StoredMatrix {
  const T* data;
  int columns, k;
  std::int64_t column_step, k_step;
};
template <class View>
auto stored_matrix(const View& stored, PackOrder order) {
  using T = std::remove_const_t<typename View::value_type>;
  const bool by_rows = order == PackOrder::kRowsAreColumns;
  const std::int64_t ld = stored.extent(1);
  return StoredMatrix<T>{stored.data(), stored.extent_int(by_rows ? 0 : 1),
                         stored.extent_int(by_rows ? 1 : 0), by_rows ? ld : 1, by_rows ? 1 : ld};
}

}  // namespace taper::detail
