// SPDX-License-Identifier: Apache-2.0
#include "rl/Batch.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace taper {

Batch::Batch(SampleSet all, const GroupCounts& counts) : samples(std::move(all)), groups(counts) {
  std::vector<bool> has_none;
  for (const SampleSummary& s : samples.all()) has_none.push_back(s.unscored);
  unscored = samples.extract(has_none);
}

std::vector<SampleSummary> Batch::summaries() const {
  std::vector<SampleSummary> all;
  std::ranges::merge(samples.all(), unscored.all(), std::back_inserter(all), {}, &SampleSummary::id,
                     &SampleSummary::id);
  return all;
}

}  // namespace taper
