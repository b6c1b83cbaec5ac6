// SPDX-License-Identifier: Apache-2.0
//
// Whether ranks can form what an option asks for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "shard/RankGrid.hpp"

namespace taper {

// A divisor chain of `ranks` that contains all the given degrees. Throws Error if there is none:
// degrees must divide the ranks and, sorted, each other.
DivisorChain chain_with(int ranks, std::vector<int> degrees);

// Tensor-parallel degrees, each with the option that asks for it.
using NamedDegrees = std::vector<std::pair<std::string, int>>;

// The degrees alone. Throws Error naming the option whose degree does not divide the ranks, or two
// whose degrees do not divide each other.
std::vector<int> require_divisible(int ranks, const NamedDegrees& degrees);

// Throws Error naming `option` if `text`, "2x4" or "4+2+2", is no layout of the ranks: of
// another form or number of ranks, of degrees that do not divide the ranks and each other, or with
// a group that does not start at a multiple of its degree. An empty text passes.
void require_layout(const std::string& option, const std::string& text, int ranks);

}  // namespace taper
