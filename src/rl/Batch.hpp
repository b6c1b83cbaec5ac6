// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "rl/DynamicSampling.hpp"
#include "rl/Sample.hpp"

namespace taper {

// The responses of an iteration.
struct Batch {
  // Takes the samples that have no score (Sample::dropped) apart from those that are trained.
  explicit Batch(GroupSelection selection);

  std::vector<Sample> samples;   // to train, by (ordinal, sample)
  std::vector<Sample> unscored;  // recorded, but neither trained nor counted in their groups
  GroupCounts groups;

  std::int64_t size() const { return std::ssize(samples) + std::ssize(unscored); }
  // All of them by (ordinal, sample), for the record. Leaves nothing in the batch.
  std::vector<Sample> take_all();
};

}  // namespace taper
