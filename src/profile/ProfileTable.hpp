// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "planner/LatencyProfile.hpp"

namespace taper {

// A profile for people: for each degree its points, their range, how well interpolation and the
// machine agree with themselves, and the costs of switching.
std::string to_table(const LatencyProfile& profile);

// Why an incomplete profile is not to be relied on, with the remedy; empty for a complete one.
std::string completeness_problem(const LatencyProfile& profile);

}  // namespace taper
