// SPDX-License-Identifier: Apache-2.0
//
// Elementwise operations for any execution space, with the arithmetic of canonical/activation.hpp.
#pragma once

#include "kernels/activation.hpp"
#include "kernels/detail/DeviceGradient.hpp"
#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/DeviceMath.hpp"

namespace taper::detail {

// Where column c of a product of interleaved gates and ups has its gate; its up is 64 columns
// further.
KOKKOS_INLINE_FUNCTION std::int64_t gate_column(std::int64_t c) {
  return c / 64 * 128 + c % 64;
}

template <class E>
void device_swiglu(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> gate_up) {
  const std::int64_t columns = y.extent_int(1), elements = y.extent_int(0) * columns;
  device_for_each(
      "taper::swiglu", exec, elements, KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t row = i / columns, c = i % columns, g = gate_column(c);
        y(row, c) = swiglu_of(gate_up(row, g), gate_up(row, g + 64));
      });
}

template <class E>
void device_swiglu_backward(const E& exec, MatrixView<float, E> d_gate_up,
                            MatrixView<const float, E> dy, MatrixView<const float, E> gate_up) {
  const std::int64_t columns = dy.extent_int(1), elements = dy.extent_int(0) * columns;
  device_for_each(
      "taper::swiglu_backward", exec, elements, KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t row = i / columns, c = i % columns, g = gate_column(c);
        const float gate = gate_up(row, g),
                    up = gate_up(row, g + 64);  // read before they may be overwritten
        const float sigmoid = 1.0f / (1.0f + device_exp(0.0f - gate));
        const float slope = sigmoid * Kokkos::fma(gate, 1.0f - sigmoid, 1.0f);
        d_gate_up(row, g) = dy(row, c) * up * slope;
        d_gate_up(row, g + 64) = dy(row, c) * (gate * sigmoid);
      });
}

template <class E>
void device_add(const E& exec, VectorView<float, E> y, VectorView<const float, E> a,
                VectorView<const float, E> b) {
  device_for_each(
      "taper::add", exec, y.size(), KOKKOS_LAMBDA(const std::int64_t i) { y(i) = a(i) + b(i); });
}

// Rows in ascending order.
template <class E>
void device_accumulate_bias(const E& exec, const GradientView& bias_gradient,
                            MatrixView<const float, E> dy) {
  const int rows = dy.extent_int(0);
  const DeviceGradient sums(bias_gradient);
  device_for_each(
      "taper::accumulate_bias", exec, dy.extent_int(1), KOKKOS_LAMBDA(const int c) {
        float sum = sums.begin(c);
        for (int r = 0; r < rows; ++r) sum += dy(r, c);
        sums.end(c, sum);
      });
}

}  // namespace taper::detail
