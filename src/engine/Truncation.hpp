// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/SamplingOptions.hpp"
#include "kernels/logits.hpp"

namespace taper {

// An id with its logit and integer weight (logits.hpp).
struct WeightedId {
  std::int32_t id = 0;
  float logit = 0.0f;
  std::int64_t mass = 0;
};

// How many levels of a row, from the first on, have all ids that truncate() must see: those that it
// keeps, and with top-k those of which top-p is a share. `levels` are those of all shards, `total`
// is the mass of the row.
int levels_to_keep(std::span<const MassLevel> levels, std::int64_t total,
                   const SamplingOptions& options);

// What top-k, top-p and min-p leave of a row.
struct KeptIds {
  std::vector<WeightedId> ids;  // ascending
  std::int64_t mass = 0;        // of all of them

  // The id at which the running sum of masses passes target; 0 <= target < mass.
  const WeightedId& at(std::int64_t target) const;
};

// Ids rank by mass, lower ids before higher ones of the same mass. top-k is applied first, then
// top-p to the mass that is left, then min-p relative to the largest mass; at least one id is kept.
// `heaviest`: all ids of the levels to keep, or more, in any order, one at least; `total`: the mass
// of the row. A function of integers only, so it is the same for every tensor-parallel degree.
KeptIds truncate(std::vector<WeightedId> heaviest, std::int64_t total,
                 const SamplingOptions& options);

}  // namespace taper
