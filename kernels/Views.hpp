// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>

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

inline FloatMatrix make_matrix(float* data, std::int64_t rows, std::int64_t columns) {
  return FloatMatrix(data, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
}

}  // namespace taper
