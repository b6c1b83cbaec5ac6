// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "rl/SampleSet.hpp"

namespace taper::test {

// Samples that all ranks have, as if every rank had made some of them. Collective over `group`.
inline SampleSet spread(const Group& group, const std::vector<Sample>& samples) {
  std::vector<Sample> mine;
  for (std::size_t i = group.rank(); i < samples.size(); i += group.size())
    mine.push_back(samples[i]);
  return SampleSet(group, std::move(mine));
}

// All samples of a set, on every rank. Collective over its ranks.
inline std::vector<Sample> all_samples(SampleSet& set) {
  set.move_to({set.ranks(), 1}, std::vector<int>(static_cast<std::size_t>(set.size()), 0));
  return set.here();
}

}  // namespace taper::test
