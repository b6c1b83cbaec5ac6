// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation.hpp"

#include "base/Error.hpp"
#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"
#include "kernels/detail/column_sums.hpp"

namespace taper {

template <class E>
void swiglu(const E& exec, MatrixView<float, E> y, MatrixView<const float, E> gate_up) {
  TAPER_EXPECT(gate_up.extent(1) == 2 * y.extent(1) && y.extent(1) % 64 == 0);
  const auto task = detail::host_ops().swiglu;
  const int blocks = y.extent_int(1) / 64;
  detail::for_each("taper::swiglu", exec, y.extent_int(0) * blocks, [=](const int i) {
    const float* gate = &gate_up(i / blocks, i % blocks * 128);
    task(&y(i / blocks, i % blocks * 64), gate, gate + 64, 64);
  });
}

template <class E>
void swiglu_backward(const E& exec, MatrixView<float, E> d_gate_up, MatrixView<const float, E> dy,
                     MatrixView<const float, E> gate_up) {
  TAPER_EXPECT(d_gate_up.extent(0) == dy.extent(0) && gate_up.extent(0) == dy.extent(0));
  TAPER_EXPECT(d_gate_up.extent(1) == 2 * dy.extent(1) && gate_up.extent(1) == 2 * dy.extent(1) &&
               dy.extent(1) % 64 == 0);
  const auto task = detail::host_ops().swiglu_backward;
  const int blocks = dy.extent_int(1) / 64;
  detail::for_each("taper::swiglu_backward", exec, dy.extent_int(0) * blocks, [=](const int i) {
    const int row = i / blocks, column = i % blocks * 128;
    const float* gate = &gate_up(row, column);
    float* d_gate = &d_gate_up(row, column);
    task(d_gate, d_gate + 64, &dy(row, i % blocks * 64), gate, gate + 64, 64);
  });
}

template <class E>
void add(const E& exec, VectorView<float, E> y, VectorView<const float, E> a,
         VectorView<const float, E> b) {
  TAPER_EXPECT(a.size() == y.size() && b.size() == y.size());
  constexpr std::int64_t kPart = 8192;
  const auto task = detail::host_ops().add;
  const std::int64_t n = y.size();
  detail::for_each("taper::add", exec, (n + kPart - 1) / kPart, [=](const std::int64_t i) {
    const std::int64_t begin = i * kPart, size = n - begin < kPart ? n - begin : kPart;
    task(y.data() + begin, a.data() + begin, b.data() + begin, size);
  });
}

template <class E>
void accumulate_bias(const E& exec, const GradientView& bias_gradient,
                     MatrixView<const float, E> dy) {
  TAPER_EXPECT(bias_gradient.size() == dy.extent_int(1));
  detail::add_column_sums("taper::accumulate_bias", exec, bias_gradient,
                          {dy.data(), nullptr, nullptr, dy.extent_int(1), 1, dy.extent_int(0)});
}

template void swiglu<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                               MatrixView<const float, HostExec>);
template void swiglu_backward<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                        MatrixView<const float, HostExec>,
                                        MatrixView<const float, HostExec>);
template void add<HostExec>(const HostExec&, VectorView<float, HostExec>,
                            VectorView<const float, HostExec>, VectorView<const float, HostExec>);
template void accumulate_bias<HostExec>(const HostExec&, const GradientView&,
                                        MatrixView<const float, HostExec>);

}  // namespace taper
