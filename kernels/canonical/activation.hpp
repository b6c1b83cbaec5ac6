// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/canonical/lanes.hpp"

namespace taper::canonical {

inline float swiglu(float gate, float up) {
  return gate / (1.0f + exp(0.0f - gate)) * up;
}

inline void swiglu_backward(float& dgate, float& dup, float dy, float gate, float up) {
  const float sigmoid = 1.0f / (1.0f + exp(0.0f - gate));
  const float slope = sigmoid * std::fma(gate, 1.0f - sigmoid, 1.0f);
  dgate = dy * up * slope;
  dup = dy * (gate * sigmoid);
}

// sums (columns) += rows of x in ascending order.
inline void accumulate_columns(float* sums, const float* x, int rows, int columns) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) sums[c] += x[r * columns + c];
}

}  // namespace taper::canonical
