// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding. Each output is one sum of two products, both rounded before they are
// added; rows do not meet.
#pragma once

#include <cstdint>

#include "kernels/Views.hpp"

namespace taper {

enum class RopeDirection { kForward, kBackward };

// Heads inside a row of activations: head h of a row starts at column h * stride.
struct RopeShape {
  int heads = 0;
  int stride = 0;
  int head_dim = 0;
};

// Rotates each head of each row, pairs (i, i + head_dim/2), by the angle of its position; kBackward
// rotates back, which is the gradient. x: (rows, width); positions: (rows); table: (positions,
// head_dim), cosines then sines.
template <class E>
void rope(const E& exec, MatrixView<float, E> x, VectorView<const std::int32_t, E> positions,
          MatrixView<const float, E> table, const RopeShape& shape, RopeDirection direction);

}  // namespace taper
