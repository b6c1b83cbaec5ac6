// SPDX-License-Identifier: Apache-2.0
//
// Checksums of values where they are, against damage on their way between ranks. They are those of
// base/Checksum.hpp on the host and others on devices: to be compared within one program.
#pragma once

#include <cstdint>

#include "kernels/Views.hpp"

namespace taper {

// sums(i) = the checksum of vectors(i).
template <class E>
void checksums(const E& exec, VectorView<std::uint64_t, E> sums,
               VectorView<const VectorView<const float, E>, E> vectors);

}  // namespace taper
