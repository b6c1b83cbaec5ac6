// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/reference/Matrix.hpp"

namespace taper::reference {

inline Vector dot_rows(const Matrix& x, const Vector& w) {
  Vector y(x.rows, 0.0);
  for (int r = 0; r < x.rows; ++r)
    for (int c = 0; c < x.columns; ++c) y[r] += x(r, c) * w[c];
  return y;
}

struct DotRowsGradients {
  Matrix dx;
  Vector dw;
};
inline DotRowsGradients dot_rows_backward(const Vector& dy, const Matrix& x, const Vector& w) {
  DotRowsGradients g{Matrix(x.rows, x.columns), Vector(w.size(), 0.0)};
  for (int r = 0; r < x.rows; ++r)
    for (int c = 0; c < x.columns; ++c) {
      g.dx(r, c) = dy[r] * w[c];
      g.dw[c] += dy[r] * x(r, c);
    }
  return g;
}

}  // namespace taper::reference
