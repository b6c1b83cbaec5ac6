// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/reference/Matrix.hpp"

namespace taper::reference {

inline double inverse_rms(const Matrix& x, int row, double eps) {
  double squares = 0.0;
  for (int c = 0; c < x.columns; ++c) squares += x(row, c) * x(row, c);
  return 1.0 / std::sqrt(squares / x.columns + eps);
}

// y = x / rms(x) * gain for each row (Zhang and Sennrich, 2019).
inline Matrix rmsnorm(const Matrix& x, const Vector& gain, double eps) {
  Matrix y(x.rows, x.columns);
  for (int r = 0; r < x.rows; ++r) {
    const double inverse = inverse_rms(x, r, eps);
    for (int c = 0; c < x.columns; ++c) y(r, c) = x(r, c) * inverse * gain[c];
  }
  return y;
}

struct NormGradient {
  Matrix dx;
  Vector dgain;
};

inline NormGradient rmsnorm_backward(const Matrix& dy, const Matrix& x, const Vector& gain,
                                     double eps) {
  NormGradient g{Matrix(x.rows, x.columns), Vector(gain.size())};
  for (int r = 0; r < x.rows; ++r) {
    const double inverse = inverse_rms(x, r, eps);
    double along_x = 0.0;
    for (int c = 0; c < x.columns; ++c) along_x += dy(r, c) * gain[c] * x(r, c);
    for (int c = 0; c < x.columns; ++c) {
      g.dx(r, c) =
          inverse * dy(r, c) * gain[c] - x(r, c) * std::pow(inverse, 3) / x.columns * along_x;
      g.dgain[c] += dy(r, c) * x(r, c) * inverse;
    }
  }
  return g;
}

}  // namespace taper::reference
