// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/Error.hpp"
#include "reshape/Meeting.hpp"

namespace taper::test {

// Destinations without a planner: sequences stay with their ranks if these form one replica; if a
// replica splits, or `repack` is set, they are shared out so that each replica has sequences in
// proportion to its ranks, with as few as possible moved.
inline std::vector<Destination> share_out(const LayoutChange& change, const SequenceList& sequences,
                                          bool repack = false) {
  std::vector<Destination> destinations(sequences.size());
  const auto& groups = change.to.groups();
  const int total_ranks = change.to.ranks();
  std::int64_t all = 0;
  for (const auto& s : sequences) all += s.samples;
  std::vector<std::int64_t> taken(groups.size(), 0);
  std::vector<std::size_t> moving;
  const auto quota = [&](int g) { return (all * groups[g].tp + total_ranks - 1) / total_ranks; };
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const LayoutGroup& before = change.from.groups()[sequences[i].replica];
    const int g = change.to.replica_of(before.first);
    const bool splits = groups[g].tp < before.tp;
    destinations[i].replica = g;
    if (!splits && !(repack && taken[g] + sequences[i].samples > quota(g)))
      taken[g] += sequences[i].samples;
    else
      moving.push_back(i);
  }
  for (const std::size_t i : moving) {
    const LayoutGroup& before = change.from.groups()[sequences[i].replica];
    int best = -1;
    for (int g = 0; g < change.to.replicas(); ++g) {
      if (!repack && !before.has(groups[g].first)) continue;
      // The least sequences per rank, counting this one.
      if (best < 0 || taken[g] * groups[best].tp < taken[best] * groups[g].tp) best = g;
    }
    TAPER_ENSURE(best >= 0);
    destinations[i].replica = best;
    taken[best] += sequences[i].samples;
  }
  return destinations;
}

}  // namespace taper::test
