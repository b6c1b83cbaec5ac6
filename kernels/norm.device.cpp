// SPDX-License-Identifier: Apache-2.0
//
// The launchers of norm.hpp for CUDA; those of the host are in norm.cpp.
#include "kernels/norm.hpp"

#include "base/Error.hpp"
#include "kernels/detail/norm_device.inl.hpp"

namespace taper {

template <>
void rmsnorm<CudaExec>(const CudaExec& exec, VectorView<float, CudaExec> y,
                       VectorView<float, CudaExec> inv, VectorView<const float, CudaExec> x,
                       VectorView<const float, CudaExec> gain, const NormShape& shape) {
  TAPER_EXPECT(static_cast<int>(gain.size()) == shape.width && x.size() % shape.stride == 0);
  detail::device_rmsnorm(exec, y, inv, x, gain, shape);
}

template <>
void rmsnorm_backward<CudaExec>(const CudaExec& exec, VectorView<float, CudaExec> dx,
                                const GradientView& dgain, VectorView<const float, CudaExec> dy,
                                VectorView<const float, CudaExec> x,
                                VectorView<const float, CudaExec> inv,
                                VectorView<const float, CudaExec> gain, const NormShape& shape,
                                Accumulate accumulate) {
  TAPER_EXPECT(static_cast<int>(gain.size()) == shape.width && dgain.size() == shape.width);
  TAPER_EXPECT(x.size() == inv.size() * shape.stride && dy.size() == x.size() &&
               dx.size() == x.size());
  detail::device_rmsnorm_backward(exec, dx, dgain, dy, x, inv, gain, shape, accumulate);
}

}  // namespace taper
