// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements that are converted at a time

// f(first element, values, their number) for elements [begin, end), block by block.
template <class F>
void for_blocks(const GradientView& x, std::int64_t begin, std::int64_t end, const F& f) {
  float buffer[kBlock];
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = std::min(kBlock, end - at);
    if (!x.is_fixed()) {
      f(at, x.f32() + at, n);
      continue;
    }
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = to_float(x.fixed()[at + i]);
    f(at, static_cast<const float*>(buffer), n);
  }
}

}  // namespace

template <class E>
void adamw(const E& exec, VectorView<float, E> parameters, VectorView<float, E> first,
           VectorView<float, E> second, const GradientView& gradients, const AdamWStep& step) {
  const auto n = static_cast<std::int64_t>(parameters.size());
  TAPER_EXPECT(n == gradients.size() && parameters.size() == first.size() &&
               first.size() == second.size());
  constexpr std::int64_t kPart = 16 * kBlock;
  const auto task = detail::host_ops().adamw;
  detail::for_each("taper::adamw", exec, (n + kPart - 1) / kPart, [=](const std::int64_t i) {
    for_blocks(gradients, i * kPart, std::min(n, (i + 1) * kPart),
               [&](std::int64_t at, const float* values, std::int64_t size) {
                 task(parameters.data() + at, first.data() + at, second.data() + at, values, size,
                      step);
               });
  });
}

template <class E>
void sum_squares(const E& exec, std::span<double> sums, const GradientView& x,
                 std::span<const std::int64_t> offsets) {
  TAPER_EXPECT(offsets.size() == sums.size() + 1);
  const auto task = detail::host_ops().sum_squares;
  detail::for_each("taper::sum_squares", exec, sums.size(), [=](const std::int64_t i) {
    double sum = 0.0;
    for_blocks(x, offsets[i], offsets[i + 1],
               [&](std::int64_t, const float* values, std::int64_t n) { sum += task(values, n); });
    sums[i] = sum;
  });
}

template void adamw<HostExec>(const HostExec&, VectorView<float, HostExec>,
                              VectorView<float, HostExec>, VectorView<float, HostExec>,
                              const GradientView&, const AdamWStep&);
template void sum_squares<HostExec>(const HostExec&, std::span<double>, const GradientView&,
                                    std::span<const std::int64_t>);

}  // namespace taper
