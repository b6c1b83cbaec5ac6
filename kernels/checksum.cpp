// SPDX-License-Identifier: Apache-2.0
#include "kernels/checksum.hpp"

#include "base/Checksum.hpp"
#include "base/Error.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper {

template <class E>
void checksums(const E& exec, VectorView<std::uint64_t, E> sums,
               VectorView<const FloatStretch, E> stretches) {
  TAPER_EXPECT(sums.size() == stretches.size());
  detail::for_each_uneven(
      "taper::checksums", exec, static_cast<int>(sums.size()), [=](const int i) {
        const FloatStretch& s = stretches(i);
        sums(i) = checksum_of(std::span(s.data, static_cast<std::size_t>(s.size)));
      });
}

template void checksums<HostExec>(const HostExec&, VectorView<std::uint64_t, HostExec>,
                                  VectorView<const FloatStretch, HostExec>);

}  // namespace taper
