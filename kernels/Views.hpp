// SPDX-License-Identifier: Apache-2.0
//
// A pointer and how many elements lie there: what kernels read and write.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/Exec.hpp"

// Functions that kernels of a device call, too.
#if defined(__CUDACC__)
#define TAPER_DEVICE_FUNCTION __host__ __device__
#else
#define TAPER_DEVICE_FUNCTION
#endif

namespace taper {
namespace detail {

// See VectorView.
template <class T, class E>
class BasicVectorView {
 public:
  using value_type = T;

  BasicVectorView() = default;
  TAPER_DEVICE_FUNCTION BasicVectorView(T* data, std::size_t size) : data_(data), size_(size) {}
  // Of T's that must not be written from those that may.
  template <class U>
  requires std::is_convertible_v<U (*)[], T (*)[]> TAPER_DEVICE_FUNCTION
  BasicVectorView(const BasicVectorView<U, E>& other)
      : data_(other.data()), size_(other.size()) {}

  TAPER_DEVICE_FUNCTION T* data() const { return data_; }
  TAPER_DEVICE_FUNCTION std::size_t size() const { return size_; }
  TAPER_DEVICE_FUNCTION T& operator()(std::size_t i) const { return data_[i]; }
  // A range where the host can reach it.
  T* begin() const requires std::same_as<E, HostExec> { return data_; }
  T* end() const requires std::same_as<E, HostExec> { return data_ + size(); }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// See MatrixView.
template <class T, class E>
class BasicMatrixView {
 public:
  using value_type = T;

  BasicMatrixView() = default;
  TAPER_DEVICE_FUNCTION BasicMatrixView(T* data, std::size_t rows, std::size_t columns)
      : data_(data), rows_(rows), columns_(columns) {}
  template <class U>
  requires std::is_convertible_v<U (*)[], T (*)[]> TAPER_DEVICE_FUNCTION
  BasicMatrixView(const BasicMatrixView<U, E>& other)
      : data_(other.data()), rows_(other.extent(0)), columns_(other.extent(1)) {}

  TAPER_DEVICE_FUNCTION T* data() const { return data_; }
  TAPER_DEVICE_FUNCTION std::size_t size() const { return rows_ * columns_; }
  // Of rows (0) or columns (1).
  TAPER_DEVICE_FUNCTION std::size_t extent(int which) const {
    return which == 0 ? rows_ : columns_;
  }
  TAPER_DEVICE_FUNCTION int extent_int(int which) const { return static_cast<int>(extent(which)); }
  TAPER_DEVICE_FUNCTION T& operator()(std::size_t row, std::size_t column) const {
    return data_[row * columns_ + column];
  }
  // A range where the host can reach it.
  T* begin() const requires std::same_as<E, HostExec> { return data_; }
  T* end() const requires std::same_as<E, HostExec> { return data_ + size(); }

 private:
  T* data_ = nullptr;
  std::size_t rows_ = 0, columns_ = 0;
};

}  // namespace detail

// Contiguous memory that E can reach; owns nothing. A call of a kernel takes E from its first
// argument alone, so that views are converted as it wants them.
template <class T, class E>
using VectorView = detail::BasicVectorView<T, std::type_identity_t<E>>;
// Rows of contiguous, row-major memory that E can reach; owns nothing.
template <class T, class E>
using MatrixView = detail::BasicMatrixView<T, std::type_identity_t<E>>;

using FloatVector = VectorView<float, Exec>;
using ConstFloatVector = VectorView<const float, Exec>;
using FloatMatrix = MatrixView<float, Exec>;
using ConstFloatMatrix = MatrixView<const float, Exec>;

inline FloatMatrix make_matrix(float* data, std::int64_t rows, std::int64_t columns) {
  return FloatMatrix(data, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
}

}  // namespace taper
