// SPDX-License-Identifier: Apache-2.0
#include "rl/Gae.hpp"

#include "base/Error.hpp"

namespace taper {

GaeEstimate gae(std::span<const double> rewards, std::span<const float> values, double gamma,
                double lambda) {
  TAPER_EXPECT(rewards.size() == values.size());
  GaeEstimate out{std::vector<double>(rewards.size()), std::vector<double>(rewards.size())};
  double next_value = 0.0, next_advantage = 0.0;
  for (std::size_t t = rewards.size(); t-- > 0;) {
    const double value = values[t];
    const double delta = rewards[t] + gamma * next_value - value;
    out.advantages[t] = next_advantage = delta + gamma * lambda * next_advantage;
    out.returns[t] = next_advantage + value;
    next_value = value;
  }
  return out;
}

}  // namespace taper
