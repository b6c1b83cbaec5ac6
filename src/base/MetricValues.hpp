// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace taper {

// Figures of an iteration by name, in the order in which they are written.
using MetricValues = std::vector<std::pair<std::string, double>>;

// Appends them.
void add(MetricValues& values, const MetricValues& more);

// The first value of that name; NaN if there is none.
double value_of(const MetricValues& values, std::string_view name);

}  // namespace taper
