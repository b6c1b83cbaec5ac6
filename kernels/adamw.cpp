// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw.hpp"

#include <array>

#include "base/Error.hpp"
#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper {

template <class E>
void adamw(const E& exec, VectorView<float, E> parameters, VectorView<float, E> first,
           VectorView<float, E> second, VectorView<const float, E> gradients,
           const AdamWStep& step) {
  TAPER_EXPECT(parameters.size() == gradients.size() && parameters.size() == first.size() &&
               first.size() == second.size());
  constexpr std::int64_t kPart = 16384;
  const auto task = detail::host_ops().adamw;
  const std::int64_t n = parameters.size();
  detail::for_each("taper::adamw", exec, (n + kPart - 1) / kPart, [=](const std::int64_t i) {
    const std::int64_t at = i * kPart, size = n - at < kPart ? n - at : kPart;
    task(parameters.data() + at, first.data() + at, second.data() + at, gradients.data() + at, size,
         step);
  });
}

template <class E>
double sum_squares(const E& exec, VectorView<const float, E> x) {
  // A fixed number of parts, added in order: the result does not depend on the number of threads.
  constexpr int kParts = 64;
  std::array<double, kParts> sums{};
  double* out = sums.data();
  const auto task = detail::host_ops().sum_squares;
  const std::int64_t n = x.size(), part = (n + kParts - 1) / kParts;
  const float* data = x.data();
  detail::for_each("taper::sum_squares", exec, kParts, [=](const std::int64_t i) {
    const std::int64_t begin = i * part < n ? i * part : n,
                       end = begin + part < n ? begin + part : n;
    out[i] = task(data + begin, end - begin);
  });
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return total;
}

template void adamw<HostExec>(const HostExec&, VectorView<float, HostExec>,
                              VectorView<float, HostExec>, VectorView<float, HostExec>,
                              VectorView<const float, HostExec>, const AdamWStep&);
template double sum_squares<HostExec>(const HostExec&, VectorView<const float, HostExec>);

}  // namespace taper
