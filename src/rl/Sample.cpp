// SPDX-License-Identifier: Apache-2.0
#include "rl/Sample.hpp"

#include <algorithm>

namespace taper {

std::int64_t Sample::loss_tokens() const {
  if (mask.empty()) return std::ssize(response);
  return std::ssize(mask) - std::count(mask.begin(), mask.end(), std::uint8_t{0});
}

double Sample::mean_advantage() const {
  double sum = 0.0;
  for (const float a : advantages) sum += a;
  return advantages.empty() ? 0.0 : sum / static_cast<double>(advantages.size());
}

}  // namespace taper
