// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/Random.hpp"

namespace taper::test {

// Numbers in [-1, 1), the same on all ranks.
inline std::vector<float> random_floats(std::int64_t count, std::uint64_t ordinal) {
  RandomStream random(11, RandomPurpose::kTest, 0, ordinal);
  std::vector<float> list(static_cast<std::size_t>(count));
  for (float& x : list) x = static_cast<float>(2.0 * random.uniform() - 1.0);
  return list;
}

}  // namespace taper::test
