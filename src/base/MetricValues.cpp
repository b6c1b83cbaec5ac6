// SPDX-License-Identifier: Apache-2.0
#include "base/MetricValues.hpp"

#include <cmath>

namespace taper {

void add(MetricValues& values, const MetricValues& more) {
  values.insert(values.end(), more.begin(), more.end());
}

double value_of(const MetricValues& values, std::string_view name) {
  for (const auto& [key, value] : values)
    if (key == name) return value;
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace taper
