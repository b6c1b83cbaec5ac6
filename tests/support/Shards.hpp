// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "shard/Shard.hpp"

namespace taper::test {

// The leaves of the shards of so many units, in order.
inline std::vector<Range> shards_of(int units, int leaves_per_unit, int degree) {
  std::vector<Range> shards;
  for (int i = 0; i < degree; ++i) {
    const Range shard = shard_range(units, degree, i);
    shards.push_back({shard.begin * leaves_per_unit, shard.end * leaves_per_unit});
  }
  return shards;
}

}  // namespace taper::test
