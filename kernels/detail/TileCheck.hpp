// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/detail/HostOps.hpp"

namespace taper::detail {

// Whether `ops` gives the bits of `expected` in a product of pairs with cancellation, small numbers
// and an odd number of inputs. Needs denormals to be flushed, as all kernels do.
bool gives_equal_pairs(const HostOps& ops, const HostOps& expected);

}  // namespace taper::detail
