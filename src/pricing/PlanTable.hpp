// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pricing/PlanJob.hpp"

namespace taper {

// A table for people, and one JSON line per placement for scripts.
std::string to_table(const PlannedPlacements& plans);
std::string to_json_lines(const PlannedPlacements& plans);

}  // namespace taper
