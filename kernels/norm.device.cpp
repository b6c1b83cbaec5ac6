// SPDX-License-Identifier: Apache-2.0
//
// The launchers of norm.hpp for CUDA; those of the host are in norm.cpp.
#include "kernels/norm.hpp"

#include "base/Error.hpp"
#include "kernels/detail/norm_device.inl.hpp"

namespace taper {

template <>
void rmsnorm<Kokkos::Cuda>(const Kokkos::Cuda& exec, VectorView<float, Kokkos::Cuda> y,
                           VectorView<float, Kokkos::Cuda> inv,
                           VectorView<const float, Kokkos::Cuda> x,
                           VectorView<const float, Kokkos::Cuda> gain, const NormShape& shape) {
  TAPER_EXPECT(gain.extent_int(0) == shape.width && x.extent(0) % shape.stride == 0);
  detail::device_rmsnorm(exec, y, inv, x, gain, shape);
}

template <>
void rmsnorm_backward<Kokkos::Cuda>(const Kokkos::Cuda& exec, VectorView<float, Kokkos::Cuda> dx,
                                    VectorView<float, Kokkos::Cuda> dgain,
                                    VectorView<const float, Kokkos::Cuda> dy,
                                    VectorView<const float, Kokkos::Cuda> x,
                                    VectorView<const float, Kokkos::Cuda> inv,
                                    VectorView<const float, Kokkos::Cuda> gain,
                                    const NormShape& shape, Accumulate accumulate) {
  TAPER_EXPECT(gain.extent_int(0) == shape.width && dgain.extent_int(0) == shape.width);
  TAPER_EXPECT(x.extent(0) == inv.extent(0) * shape.stride && dy.extent(0) == x.extent(0) &&
               dx.extent(0) == x.extent(0));
  detail::device_rmsnorm_backward(exec, dx, dgain, dy, x, inv, gain, shape, accumulate);
}

}  // namespace taper
