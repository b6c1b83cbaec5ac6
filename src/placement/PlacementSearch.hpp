// SPDX-License-Identifier: Apache-2.0
//
// The fastest placements by their prices (the plan search of ReaL, arXiv 2406.14088, with another
// cost model and a search that gives the same answer everywhere). Runs do not search: they are told
// what was found.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/PlacementCosts.hpp"

namespace taper {

struct PlacementSearchOptions {
  int top = 5;                        // placements wanted
  std::int64_t exhaustive = 200'000;  // up to so many placements all are examined
  int chains = 8;                     // else: of simulated annealing
  int moves = 4000;                   // of a chain
  std::uint64_t seed = 0;
};

struct FoundPlacement {
  PlaceChoice choice;
  std::int64_t iteration_ns = 0;
  std::int64_t published_ns = 0;  // part of it
  std::int64_t rank_bytes = 0;    // of the rank that needs most
};

struct FoundPlacements {
  // Best first, no two with the same figures; ties by what is published, then by memory, then by
  // the order of options.
  std::vector<FoundPlacement> list;
  bool is_exhaustive = false;
  std::int64_t examined = 0;
};

// Placements that are possible and fit in memory; `starts` are examined in any case, and where not
// all placements are, also those of all models at one degree, each in its first option. Every model
// must have an option. A pure function.
FoundPlacements search_placements(const PlacementCosts& costs,
                                  const PlacementSearchOptions& options,
                                  const std::vector<PlaceChoice>& starts);

}  // namespace taper
