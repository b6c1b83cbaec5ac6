// SPDX-License-Identifier: Apache-2.0
//
// Test data for kernels: random floats, views of vectors, packed weights, gradients by finite
// differences.
#pragma once

#include <functional>
#include <vector>

#include "kernels/Staging.hpp"
#include "kernels/Views.hpp"
#include "kernels/product.hpp"
#include "kernels/reference/Matrix.hpp"

namespace taper::test {

// Where kernels of Exec can reach them.
using Floats = Staged<float>;

// n floats uniform in [low, high), the same for the same (n, seed).
Floats random_floats(std::int64_t n, int seed, double low = -1.0, double high = 1.0);

template <class T>
VectorView<T, Exec> view(Staged<T>& v) {
  return VectorView<T, Exec>(v.data(), v.size());
}
template <class T>
VectorView<const T, Exec> view(const Staged<T>& v) {
  return VectorView<const T, Exec>(v.data(), v.size());
}
template <class T>
MatrixView<T, Exec> view(Staged<T>& v, std::int64_t rows, std::int64_t columns) {
  return MatrixView<T, Exec>(v.data(), rows, columns);
}
template <class T>
MatrixView<const T, Exec> view(const Staged<T>& v, std::int64_t rows, std::int64_t columns) {
  return MatrixView<const T, Exec>(v.data(), rows, columns);
}
template <class T>
VectorView<const T, Exec> const_view(const Staged<T>& v) {
  return view(v);
}
template <class T>
MatrixView<const T, Exec> const_view(const Staged<T>& v, std::int64_t rows, std::int64_t columns) {
  return view(v, rows, columns);
}

reference::Matrix to_matrix(const Floats& values, int rows, int columns);
reference::Vector to_doubles(const Floats& values);

// Weights packed for a product, with what the product sees of them.
struct PackedWeights {
  Staged<char> bytes;
  PackedMatrix matrix;
};
PackedWeights pack(const Floats& stored, int rows, int columns, WeightType type, PackOrder order,
                   const Exec& exec = Exec());

// Values as weights of the type hold them.
Floats rounded(const Floats& values, WeightType type);

// d f / d values[i] for every i, by central differences in double.
reference::Vector finite_differences(reference::Vector values,
                                     const std::function<double(const reference::Vector&)>& f,
                                     double step = 1e-5);

// Sum of a[i] * b[i]: turns a gradient dy and outputs y into the loss whose gradient by y is dy.
double dot(const reference::Vector& a, const reference::Vector& b);

// Sets flush-to-zero and denormals-are-zero in every thread of the host execution space, as
// programs do at start.
void flush_denormals();

}  // namespace taper::test
