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
using FloatVector = VectorView<float, HostExec>;
using ConstFloatVector = VectorView<const float, HostExec>;
using FloatMatrix = MatrixView<float, HostExec>;
using ConstFloatMatrix = MatrixView<const float, HostExec>;

inline FloatMatrix make_matrix(float* data, std::int64_t rows, std::int64_t columns) {
  return FloatMatrix(data, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
}

}  // namespace taper
