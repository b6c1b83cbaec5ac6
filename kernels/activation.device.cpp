// SPDX-License-Identifier: Apache-2.0
//
// The launchers of activation.hpp for CUDA; those of the host are in activation.cpp.
#include "kernels/activation.hpp"

#include "base/Error.hpp"
#include "kernels/detail/activation_device.inl.hpp"

namespace taper {

template <>
void swiglu<Kokkos::Cuda>(const Kokkos::Cuda& exec, MatrixView<float, Kokkos::Cuda> y,
                          MatrixView<const float, Kokkos::Cuda> gate_up) {
  TAPER_EXPECT(gate_up.extent(1) == 2 * y.extent(1) && y.extent(1) % 64 == 0);
  detail::device_swiglu(exec, y, gate_up);
}

template <>
void swiglu_backward<Kokkos::Cuda>(const Kokkos::Cuda& exec,
                                   MatrixView<float, Kokkos::Cuda> d_gate_up,
                                   MatrixView<const float, Kokkos::Cuda> dy,
                                   MatrixView<const float, Kokkos::Cuda> gate_up) {
  TAPER_EXPECT(d_gate_up.extent(0) == dy.extent(0) && gate_up.extent(0) == dy.extent(0));
  TAPER_EXPECT(d_gate_up.extent(1) == 2 * dy.extent(1) && gate_up.extent(1) == 2 * dy.extent(1) &&
               dy.extent(1) % 64 == 0);
  detail::device_swiglu_backward(exec, d_gate_up, dy, gate_up);
}

template <>
void add<Kokkos::Cuda>(const Kokkos::Cuda& exec, VectorView<float, Kokkos::Cuda> y,
                       VectorView<const float, Kokkos::Cuda> a,
                       VectorView<const float, Kokkos::Cuda> b) {
  TAPER_EXPECT(a.size() == y.size() && b.size() == y.size());
  detail::device_add(exec, y, a, b);
}

template <>
void accumulate_bias<Kokkos::Cuda>(const Kokkos::Cuda& exec,
                                   VectorView<float, Kokkos::Cuda> bias_gradient,
                                   MatrixView<const float, Kokkos::Cuda> dy) {
  TAPER_EXPECT(bias_gradient.size() == dy.extent(1));
  detail::device_accumulate_bias(exec, bias_gradient, dy);
}

}  // namespace taper
