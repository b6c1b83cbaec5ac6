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
  TAPER_EXPECT(static_cast<int>(gain.size()) == shape.width && x.size() % shape.stride == 0);
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
  TAPER_EXPECT(static_cast<int>(gain.size()) == shape.width &&
               static_cast<int>(dgain.size()) == shape.width);
  TAPER_EXPECT(x.size() == inv.size() * shape.stride && dy.size() == x.size() &&
               dx.size() == x.size());
  detail::device_rmsnorm_backward(exec, dx, dgain, dy, x, inv, gain, shape, accumulate);
}

}  // namespace taper
