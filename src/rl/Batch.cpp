// SPDX-License-Identifier: Apache-2.0
#include "rl/Batch.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace taper {

Batch::Batch(SampleSet all, const GroupCounts& counts) : samples(std::move(all)), groups(counts) {
  std::vector<bool> dropped;
  for (const SampleSummary& s : samples.all()) dropped.push_back(s.dropped);
  unscored = samples.extract(dropped);
}

std::vector<SampleSummary> Batch::summaries() const {
  std::vector<SampleSummary> all;
  const auto comes_first = [](const SampleSummary& a, const SampleSummary& b) {
    return std::tie(a.ordinal, a.sample) < std::tie(b.ordinal, b.sample);
  };
  std::merge(samples.all().begin(), samples.all().end(), unscored.all().begin(),
             unscored.all().end(), std::back_inserter(all), comes_first);
  return all;
}

}  // namespace taper
