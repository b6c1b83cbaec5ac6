// SPDX-License-Identifier: Apache-2.0
//
// The references say what an operation computes, in double and by plain loops; speed and the order
// of sums are not their concern. Fast kernels agree with them to a tolerance.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace taper::reference {

// Row-major.
struct Matrix {
  int rows = 0, columns = 0;
  std::vector<double> data;

  Matrix() = default;
  Matrix(int r, int c) : rows(r), columns(c), data(static_cast<std::size_t>(r) * c) {}
  Matrix(int r, int c, std::vector<double> values) : rows(r), columns(c), data(std::move(values)) {}

  double& operator()(int r, int c) { return data[static_cast<std::size_t>(r) * columns + c]; }
  double operator()(int r, int c) const { return data[static_cast<std::size_t>(r) * columns + c]; }
};

using Vector = std::vector<double>;

}  // namespace taper::reference
