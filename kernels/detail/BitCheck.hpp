// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/detail/HostOps.hpp"

namespace taper::detail {

// Whether `task` gives the bits of `expected` in a product of weights in pairs with cancellation,
// small numbers, denormals and an odd number of inputs. The calling thread flushes denormals
// meanwhile, as all that compute do.
bool gives_equal_bits(ProductTask task, ProductTask expected);

}  // namespace taper::detail
