// SPDX-License-Identifier: Apache-2.0
#include "kernels/checksum.hpp"

#include <span>

#include "base/Checksum.hpp"
#include "base/Error.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper {

template <class E>
void checksums(const E& exec, VectorView<std::uint64_t, E> sums,
               VectorView<const VectorView<const float, E>, E> vectors) {
  TAPER_EXPECT(sums.size() == vectors.size());
  detail::for_each_uneven(
      "taper::checksums", exec, static_cast<int>(sums.size()),
      [=](const int i) { sums(i) = checksum_of(std::span(vectors(i).data(), vectors(i).size())); });
}

template void checksums<HostExec>(const HostExec&, VectorView<std::uint64_t, HostExec>,
                                  VectorView<const VectorView<const float, HostExec>, HostExec>);

}  // namespace taper
