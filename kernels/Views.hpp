// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <span>
#include <vector>

namespace taper {

// Unmanaged, contiguous, row-major views of arena memory that execution space E can reach.
template <class T, class E>
using VectorView = Kokkos::View<T*, Kokkos::LayoutRight, typename E::memory_space,
                                Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
template <class T, class E>
using MatrixView = Kokkos::View<T**, Kokkos::LayoutRight, typename E::memory_space,
                                Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

using HostExec = Kokkos::DefaultHostExecutionSpace;
// Where models live and compute. All modules above the kernels name this one, so that a build for a
// device changes it here alone.
using Exec = HostExec;
using FloatVector = VectorView<float, Exec>;
using ConstFloatVector = VectorView<const float, Exec>;
using FloatMatrix = MatrixView<float, Exec>;
using ConstFloatMatrix = MatrixView<const float, Exec>;

// Host memory that a kernel reads or writes: arrays that the host fills before a launch (ids,
// positions, rows), or whose few values it needs after one. The array must live, and the host must
// not touch it, until the exec.fence() after the launch.
template <class T>
VectorView<T, Exec> staging_view(std::span<T> values) {
  return VectorView<T, Exec>(values.data(), values.size());
}
template <class T>
VectorView<T, Exec> staging_view(std::vector<T>& values) {
  return staging_view(std::span<T>(values));
}
template <class T>
VectorView<const T, Exec> staging_view(const std::vector<T>& values) {
  return staging_view(std::span<const T>(values));
}

inline FloatMatrix make_matrix(float* data, std::int64_t rows, std::int64_t columns) {
  return FloatMatrix(data, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
}

}  // namespace taper
