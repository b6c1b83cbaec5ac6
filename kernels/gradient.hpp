// SPDX-License-Identifier: Apache-2.0
//
// Where kernels add up the gradients of parameters.
#pragma once

#include <cstdint>
#include <span>

#include "base/Fixed.hpp"
#include "kernels/Views.hpp"

namespace taper {

enum class GradientType {
  kF32,    // one chain of additions per element, in the order of the calls
  kFixed,  // what a call adds is a chain of its own, rounded once (base/Fixed.hpp): calls may come
           // in any order, on any rank
};
constexpr std::int64_t bytes_of(GradientType type) {
  return type == GradientType::kFixed ? sizeof(Fixed) : sizeof(float);
}

// Sums of (rows, columns) elements, row-major, in memory that kernels reach; owns nothing. A
// vector has one row.
struct GradientView {
  void* data = nullptr;
  GradientType type = GradientType::kF32;
  std::int64_t rows = 0, columns = 0;

  GradientView() = default;
  GradientView(void* memory, GradientType t, std::int64_t r, std::int64_t c)
      : data(memory), type(t), rows(r), columns(c) {}
  // Of plain floats.
  template <class E>
  GradientView(const detail::BasicMatrixView<float, E>& m)
      : GradientView(m.data(), GradientType::kF32, m.extent_int(0), m.extent_int(1)) {}
  template <class E>
  GradientView(const detail::BasicVectorView<float, E>& v)
      : GradientView(v.data(), GradientType::kF32, 1, static_cast<std::int64_t>(v.size())) {}

  bool is_fixed() const { return type == GradientType::kFixed; }
  std::int64_t size() const { return rows * columns; }
  float* f32() const { return is_fixed() ? nullptr : static_cast<float*>(data); }
  Fixed* fixed() const { return is_fixed() ? static_cast<Fixed*>(data) : nullptr; }
  // Elements [begin, begin + size) as a vector.
  GradientView part(std::int64_t begin, std::int64_t size) const {
    return {static_cast<char*>(data) + begin * bytes_of(type), type, 1, size};
  }
};

// All sums = 0.
template <class E>
void clear(const E& exec, const GradientView& sums);

// Adds to fixed-point sums those of another rank.
template <class E>
void add_fixed_sums(const E& exec, VectorView<Fixed, E> sums, VectorView<const Fixed, E> terms);

// Copies between the memory of the execution space and that of the host; return when the values
// have arrived.
template <class E>
void copy_to_host(const E& exec, std::span<Fixed> to, VectorView<const Fixed, E> from);
template <class E>
void copy_from_host(const E& exec, VectorView<Fixed, E> to, std::span<const Fixed> from);

}  // namespace taper
