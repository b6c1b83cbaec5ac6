// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace taper {

// The order in which pass `pass` visits `count` items: a pure function of its arguments. `stream`
// tells apart what must not have the same order (files of a mixture).
std::vector<int> shuffled(int count, std::uint64_t seed, std::uint64_t pass,
                          std::uint64_t stream = 0);

}  // namespace taper
