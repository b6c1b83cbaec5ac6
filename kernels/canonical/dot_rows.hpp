// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace taper::canonical {

// One value: a sum over ascending columns in double.
inline float dot_row(const float* x, const float* w, int h) {
  double sum = 0.0;
  for (int c = 0; c < h; ++c) sum += static_cast<double>(x[c]) * static_cast<double>(w[c]);
  return static_cast<float>(sum);
}

// dx (rows, h) = dy w; dw (h) += dy x, rows ascending.
inline void dot_rows_backward(float* dx, float* dw, const float* dy, const float* x, const float* w,
                              int rows, int h) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < h; ++c) {
      dw[c] = std::fma(dy[r], x[r * h + c], dw[c]);
      dx[r * h + c] = dy[r] * w[c];
    }
}

}  // namespace taper::canonical
