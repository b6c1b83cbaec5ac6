// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm over rows or heads: y = (x * inv) * gain, inv = 1 / sqrt(mean(x^2) + eps); the sum of
// squares runs over 16 lane chains and one fixed tree.
#pragma once

#include "kernels/Views.hpp"
#include "kernels/gradient.hpp"

namespace taper {

// Vectors of `width` values at a distance of `stride`, several per row: (rows, per_row, stride),
// the first width valid.
struct NormShape {
  int width = 0;
  int stride = 0;
  float eps = 1e-5f;
  int per_row = 1;
};

// y and inv (one per vector; empty: not wanted) from x; y may be x. gain: (width). x and y are flat
// (vectors * stride).
template <class E>
void rmsnorm(const E& exec, VectorView<float, E> y, VectorView<float, E> inv,
             VectorView<const float, E> x, VectorView<const float, E> gain, const NormShape& shape);

enum class Accumulate { kNo, kYes };

// dx (= or +=) and dgain (+=) from dy. dx may be dy if accumulate is kNo. To fixed-point sums, the
// vectors of each place in a row add a chain of their own: so it does not matter which of them
// (heads) are on this rank.
template <class E>
void rmsnorm_backward(const E& exec, VectorView<float, E> dx, const GradientView& dgain,
                      VectorView<const float, E> dy, VectorView<const float, E> x,
                      VectorView<const float, E> inv, VectorView<const float, E> gain,
                      const NormShape& shape, Accumulate accumulate);

}  // namespace taper
