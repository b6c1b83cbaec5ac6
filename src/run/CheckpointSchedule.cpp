// SPDX-License-Identifier: Apache-2.0
#include "run/CheckpointSchedule.hpp"

#include <algorithm>

namespace taper {

bool CheckpointSchedule::is_due(std::int64_t iteration) const {
  return iteration == last || (every > 0 && iteration % every == 0);
}

std::optional<std::int64_t> CheckpointSchedule::first() const {
  if (every > 0 && last > 0) return std::min(every, last);
  if (every > 0) return every;
  return last > 0 ? std::optional(last) : std::nullopt;
}

}  // namespace taper
