// SPDX-License-Identifier: Apache-2.0
//
// The launchers of activation.hpp for CUDA; those of the host are in activation.cpp.
#include "kernels/activation.hpp"

#include "base/Error.hpp"
#include "kernels/detail/activation_device.inl.hpp"

namespace taper {

template <>
void swiglu<CudaExec>(const CudaExec& exec, MatrixView<float, CudaExec> y,
                      MatrixView<const float, CudaExec> gate_up) {
  TAPER_EXPECT(gate_up.extent(1) == 2 * y.extent(1) && y.extent(1) % 64 == 0);
  detail::device_swiglu(exec, y, gate_up);
}

template <>
void swiglu_backward<CudaExec>(const CudaExec& exec, MatrixView<float, CudaExec> d_gate_up,
                               MatrixView<const float, CudaExec> dy,
                               MatrixView<const float, CudaExec> gate_up) {
  TAPER_EXPECT(d_gate_up.extent(0) == dy.extent(0) && gate_up.extent(0) == dy.extent(0));
  TAPER_EXPECT(d_gate_up.extent(1) == 2 * dy.extent(1) && gate_up.extent(1) == 2 * dy.extent(1) &&
               dy.extent(1) % 64 == 0);
  detail::device_swiglu_backward(exec, d_gate_up, dy, gate_up);
}

template <>
void add<CudaExec>(const CudaExec& exec, VectorView<float, CudaExec> y,
                   VectorView<const float, CudaExec> a, VectorView<const float, CudaExec> b) {
  TAPER_EXPECT(a.size() == y.size() && b.size() == y.size());
  detail::device_add(exec, y, a, b);
}

template <>
void accumulate_bias<CudaExec>(const CudaExec& exec, const GradientView& bias_gradient,
                               MatrixView<const float, CudaExec> dy) {
  TAPER_EXPECT(bias_gradient.size() == dy.extent_int(1));
  detail::device_accumulate_bias(exec, bias_gradient, dy);
}

}  // namespace taper
