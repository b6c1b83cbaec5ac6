// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope.hpp"

#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper {

template <class E>
void rope(const E& exec, MatrixView<float, E> x, VectorView<const std::int32_t, E> positions,
          MatrixView<const float, E> table, const RopeShape& shape, RopeDirection direction) {
  const auto task = detail::host_ops().rope;
  const int rows = x.extent_int(0), half = shape.head_dim / 2;
  const float sign = direction == RopeDirection::kForward ? 1.0f : -1.0f;
  detail::for_each("taper::rope", exec, rows, [=](const int row) {
    const float* angles = &table(positions(row), 0);
    for (int h = 0; h < shape.heads; ++h) {
      float* head = &x(row, 0) + h * shape.stride;
      task(head, head, angles, angles + half, shape.head_dim, sign);
    }
  });
}

template void rope<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                             VectorView<const std::int32_t, HostExec>,
                             MatrixView<const float, HostExec>, const RopeShape&, RopeDirection);

}  // namespace taper
