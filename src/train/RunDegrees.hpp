// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "train/RunOptions.hpp"

namespace taper {

// The tensor-parallel degrees of all models of a run and the sizes of the blocks of ranks that it
// names: the chain of its ranks must have them. Throws Error naming the keys of those that the
// ranks cannot have. Not collective.
std::vector<int> degrees_of(const RunOptions& options, int ranks);

}  // namespace taper
