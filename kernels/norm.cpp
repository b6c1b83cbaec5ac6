// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm.hpp"

#include "base/Error.hpp"
#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"
#include "kernels/detail/column_sums.hpp"

namespace taper {

template <class E>
void rmsnorm(const E& exec, VectorView<float, E> y, VectorView<float, E> inv,
             VectorView<const float, E> x, VectorView<const float, E> gain,
             const NormShape& shape) {
  TAPER_EXPECT(static_cast<int>(gain.size()) == shape.width && x.size() % shape.stride == 0);
  const auto task = detail::host_ops().rmsnorm;
  const int n = static_cast<int>(x.size() / shape.stride);
  detail::for_each("taper::rmsnorm", exec, n, [=](const std::int64_t i) {
    const float value = task(y.data() + i * shape.stride, x.data() + i * shape.stride, gain.data(),
                             shape.width, shape.eps);
    if (inv.data() != nullptr) inv(i) = value;
  });
}

template <class E>
void rmsnorm_backward(const E& exec, VectorView<float, E> dx, const GradientView& dgain,
                      VectorView<const float, E> dy, VectorView<const float, E> x,
                      VectorView<const float, E> inv, VectorView<const float, E> gain,
                      const NormShape& shape, Accumulate accumulate) {
  TAPER_EXPECT(static_cast<int>(gain.size()) == shape.width && dgain.size() == shape.width);
  TAPER_EXPECT(x.size() == inv.size() * shape.stride && dy.size() == x.size() &&
               dx.size() == x.size());
  const auto& ops = detail::host_ops();
  const int n = static_cast<int>(x.size() / shape.stride);
  // dgain first: dx may overwrite dy.
  if (dgain.is_fixed()) {
    for (int v = 0; v < shape.per_row; ++v)
      detail::add_column_sums(
          "taper::rmsnorm_dgain", exec, dgain,
          {dy.data() + v * shape.stride, x.data() + v * shape.stride, inv.data() + v,
           std::int64_t{shape.per_row} * shape.stride, shape.per_row, n / shape.per_row});
  } else {
    detail::add_column_sums("taper::rmsnorm_dgain", exec, dgain,
                            {dy.data(), x.data(), inv.data(), shape.stride, 1, n});
  }
  detail::for_each("taper::rmsnorm_backward", exec, n, [=](const std::int64_t i) {
    ops.rmsnorm_backward(dx.data() + i * shape.stride, dy.data() + i * shape.stride,
                         x.data() + i * shape.stride, gain.data(), shape.width, inv(i),
                         accumulate == Accumulate::kYes);
  });
}

template void rmsnorm<HostExec>(const HostExec&, VectorView<float, HostExec>,
                                VectorView<float, HostExec>, VectorView<const float, HostExec>,
                                VectorView<const float, HostExec>, const NormShape&);
template void rmsnorm_backward<HostExec>(const HostExec&, VectorView<float, HostExec>,
                                         const GradientView&, VectorView<const float, HostExec>,
                                         VectorView<const float, HostExec>,
                                         VectorView<const float, HostExec>,
                                         VectorView<const float, HostExec>, const NormShape&,
                                         Accumulate);

}  // namespace taper
