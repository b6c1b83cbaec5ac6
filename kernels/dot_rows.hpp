// SPDX-License-Identifier: Apache-2.0
//
// Dot products of rows with one vector, the output of a scalar head: each is one sum over ascending
// columns in double, rounded once. The gradient of the vector is one chain of fused multiply-adds
// per column over ascending rows.
#pragma once

#include "kernels/Views.hpp"
#include "kernels/gradient.hpp"

namespace taper {

// y (rows) = x (rows, h) w (h).
template <class E>
void dot_rows(const E& exec, VectorView<float, E> y, MatrixView<const float, E> x,
              VectorView<const float, E> w);

// dx (rows, h) = dy (rows) times w (h), and dw (h) += dy x. dx may be x.
template <class E>
void dot_rows_backward(const E& exec, MatrixView<float, E> dx, const GradientView& dw,
                       VectorView<const float, E> dy, MatrixView<const float, E> x,
                       VectorView<const float, E> w);

}  // namespace taper
