// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace taper {

// After which iterations a run saves checkpoints.
struct CheckpointSchedule {
  std::int64_t every = 0;  // iterations; 0: none on the way
  std::int64_t last = 0;   // the last iteration, if that has one in any case; else 0

  // Iterations count from 1.
  bool is_due(std::int64_t iteration) const;
  // The first one that a run saves which begins with iteration 1; nothing if it need not save
  // any.
  std::optional<std::int64_t> first() const;
};

}  // namespace taper
