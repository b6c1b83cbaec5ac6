// SPDX-License-Identifier: Apache-2.0
//
// SwiGLU and sums of vectors, each element on its own. The gradient of a bias is one chain of
// additions per column over ascending rows.
#pragma once

#include <cstdint>

#include "kernels/Views.hpp"
#include "kernels/gradient.hpp"

namespace taper {

// y (rows, n) = silu(gate) * up, with gate and up interleaved by blocks of 64 columns: gate_up
// (rows, 2 n) holds, for each block, 64 columns of gate and then 64 of up. n is a multiple of 64.
template <class E>
void swiglu(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> gate_up);

// d_gate_up from dy; may be the memory of gate_up.
template <class E>
void swiglu_backward(const E& exec, MatrixView<float, E> d_gate_up, MatrixView<const float, E> dy,
                     MatrixView<const float, E> gate_up);

// y = a + b, elementwise; y may be a or b.
template <class E>
void add(const E& exec, VectorView<float, E> y, VectorView<const float, E> a,
         VectorView<const float, E> b);

// bias_gradient (columns) += sum over rows of dy (rows, columns).
template <class E>
void accumulate_bias(const E& exec, const GradientView& bias_gradient,
                     MatrixView<const float, E> dy);

}  // namespace taper
