// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "rl/DynamicSampling.hpp"
#include "rl/SampleSet.hpp"

namespace taper {

// The responses of an iteration.
struct Batch {
  // Takes those without a score (SampleSummary::unscored) apart from those that are trained.
  Batch(SampleSet all, const GroupCounts& counts);

  SampleSet samples;   // to train
  SampleSet unscored;  // recorded, but neither trained nor counted in their groups
  GroupCounts groups;

  std::int64_t size() const { return samples.size() + unscored.size(); }
  // Of all of them, by their ids.
  std::vector<SampleSummary> summaries() const;
};

}  // namespace taper
