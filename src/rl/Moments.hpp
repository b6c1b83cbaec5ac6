// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <span>

namespace taper {

struct Moments {
  double mean = 0.0, variance = 0.0;  // unbiased; 0 of fewer than two values
};

inline Moments moments_of(std::span<const double> values) {
  Moments m;
  const double n = static_cast<double>(values.size());
  if (values.empty()) return m;
  m.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  for (const double v : values) m.variance += (v - m.mean) * (v - m.mean);
  m.variance = values.size() > 1 ? m.variance / (n - 1.0) : 0.0;
  return m;
}

}  // namespace taper
