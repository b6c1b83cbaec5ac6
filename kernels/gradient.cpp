// SPDX-License-Identifier: Apache-2.0
#include "kernels/gradient.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper {
namespace {

constexpr std::int64_t kPart = 16384;  // elements per task

// f(first element, their number) for the parts of n elements.
template <class E, class F>
void for_parts(const char* label, const E& exec, std::int64_t n, const F& f) {
  detail::for_each(label, exec, (n + kPart - 1) / kPart,
                   [=](const std::int64_t i) { f(i * kPart, std::min(kPart, n - i * kPart)); });
}

}  // namespace

template <class E>
void clear(const E& exec, const GradientView& sums) {
  for_parts("taper::clear", exec, sums.size(), [=](std::int64_t at, std::int64_t n) {
    if (sums.is_fixed())
      std::fill_n(sums.fixed() + at, n, Fixed{});
    else
      std::fill_n(sums.f32() + at, n, 0.0f);
  });
}

template <class E>
void add_fixed_sums(const E& exec, VectorView<Fixed, E> sums, VectorView<const Fixed, E> terms) {
  TAPER_EXPECT(sums.size() == terms.size());
  for_parts("taper::add_fixed_sums", exec, static_cast<std::int64_t>(sums.size()),
            [=](std::int64_t at, std::int64_t n) {
              for (std::int64_t i = at; i < at + n; ++i) sums(i) += terms(i);
            });
}

template <class E>
void copy_to_host(const E& exec, std::span<Fixed> to, VectorView<const Fixed, E> from) {
  TAPER_EXPECT(to.size() == from.size());
  exec.fence();
  std::copy_n(from.data(), from.size(), to.begin());
}

template <class E>
void copy_from_host(const E& exec, VectorView<Fixed, E> to, std::span<const Fixed> from) {
  TAPER_EXPECT(to.size() == from.size());
  exec.fence();
  std::copy_n(from.begin(), from.size(), to.data());
}

template void clear<HostExec>(const HostExec&, const GradientView&);
template void add_fixed_sums<HostExec>(const HostExec&, VectorView<Fixed, HostExec>,
                                       VectorView<const Fixed, HostExec>);

template void copy_to_host<HostExec>(const HostExec&, std::span<Fixed>,
                                     VectorView<const Fixed, HostExec>);
template void copy_from_host<HostExec>(const HostExec&, VectorView<Fixed, HostExec>,
                                       std::span<const Fixed>);

}  // namespace taper
