// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/reference/Matrix.hpp"

namespace taper::reference {

// y = x w^T (+ bias): x (rows, k), w (columns, k), bias (columns) or empty.
inline Matrix multiply(const Matrix& x, const Matrix& w, const Vector& bias = {}) {
  Matrix y(x.rows, w.rows);
  for (int r = 0; r < y.rows; ++r)
    for (int c = 0; c < y.columns; ++c) {
      for (int k = 0; k < x.columns; ++k) y(r, c) += x(r, k) * w(c, k);
      if (!bias.empty()) y(r, c) += bias[c];
    }
  return y;
}

// a^T b: a (rows, n), b (rows, m) -> (n, m). With a = dy and b = x, the gradient of multiply() by
// w.
inline Matrix outer_product(const Matrix& a, const Matrix& b) {
  Matrix sum(a.columns, b.columns);
  for (int r = 0; r < a.rows; ++r)
    for (int i = 0; i < a.columns; ++i)
      for (int j = 0; j < b.columns; ++j) sum(i, j) += a(r, i) * b(r, j);
  return sum;
}

inline Matrix transpose(const Matrix& a) {
  Matrix t(a.columns, a.rows);
  for (int r = 0; r < a.rows; ++r)
    for (int c = 0; c < a.columns; ++c) t(c, r) = a(r, c);
  return t;
}

// The gradient of multiply() by a bias.
inline Vector column_sums(const Matrix& a) {
  Vector sums(a.columns);
  for (int r = 0; r < a.rows; ++r)
    for (int c = 0; c < a.columns; ++c) sums[c] += a(r, c);
  return sums;
}

}  // namespace taper::reference
