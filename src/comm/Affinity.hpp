// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace taper {

// The cores that the calling thread may run on, ascending. The mask grows from room for first_guess
// to what the kernel needs. Throws Error if the kernel does not say.
std::vector<int> affinity_cores(int first_guess = 1024);

}  // namespace taper
