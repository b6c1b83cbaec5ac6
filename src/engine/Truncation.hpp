// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "engine/SamplingOptions.hpp"

namespace taper {

// What top-k, top-p and min-p leave of a row: an id is kept if (mass, id) ranks at or before the
// threshold, masses descending, ids ascending on ties. A function of integers only, so it is the
// same for every tensor-parallel degree.
struct KeptSet {
  std::int64_t threshold_mass = 0;
  std::int32_t threshold_id = 0;
  std::int64_t mass = 0;  // summed over the kept ids

  bool keeps(std::int64_t id_mass, std::int32_t id) const {
    return id_mass > threshold_mass || (id_mass == threshold_mass && id <= threshold_id);
  }
};

// masses: integer weights of all ids of a row (logits.hpp), `total` their sum. top-k is applied
// first, then top-p to the mass that is left, then min-p relative to the largest mass. At least one
// id is kept.
KeptSet truncate(std::span<const std::int64_t> masses, std::int64_t total,
                 const SamplingOptions& options);

// The id at which the running sum of kept masses, in order of ids, passes target; 0 <= target <
// kept.mass.
std::int32_t pick(std::span<const std::int64_t> masses, const KeptSet& kept, std::int64_t target);

}  // namespace taper
