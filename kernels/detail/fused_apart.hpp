// SPDX-License-Identifier: Apache-2.0
//
// Products of fused.hpp as the calls that they stand for: on the host, and in f32 arithmetic.
#pragma once

#include "kernels/activation.hpp"
#include "kernels/fused.hpp"

namespace taper::detail {

template <class E>
void multiply_both_apart(const E& exec, const Projection<E>& first, const Projection<E>& second,
                         MatrixView<const float, E> x) {
  multiply(exec, first.y, x, first.w, first.bias);
  multiply(exec, second.y, x, second.w, second.bias);
}

template <class E>
void multiply_swiglu_apart(const E& exec, MatrixView<float, E> y, MatrixView<float, E> gate_up,
                           MatrixView<const float, E> x, const PackedMatrix& w) {
  multiply(exec, gate_up, x, w);
  swiglu(exec, y, MatrixView<const float, E>(gate_up));
}

template <class E>
void multiply_leaves_and_add_apart(const E& exec, MatrixView<float, E> y,
                                   MatrixView<const float, E> residual,
                                   MatrixView<const float, E> x, const PackedMatrix& w,
                                   const LeafOrder& leaves, float* scratch) {
  multiply_leaves(exec, MatrixView<float, E>(scratch, y.extent(0), y.extent(1)), x, w, leaves);
  add(exec, VectorView<float, E>(y.data(), y.size()),
      VectorView<const float, E>(residual.data(), residual.size()),
      VectorView<const float, E>(scratch, y.size()));
}

}  // namespace taper::detail
