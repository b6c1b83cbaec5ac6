// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace taper {

struct GaeEstimate {
  std::vector<double> advantages;  // per token, not normalized
  std::vector<double> returns;     // advantage + value: what the critic learns
};

// Generalized advantage estimation (Schulman et al. 2015) over the tokens of one response: with
// delta_t = reward_t + gamma value_{t+1} - value_t,
//   A_t = delta_t + gamma lambda A_{t+1},  return_t = A_t + value_t.
// values[t] is that of the state before token t. The value after the last token is 0, even if the
// response was truncated: a text that never ended is judged as it stands.
GaeEstimate gae(std::span<const double> rewards, std::span<const float> values, double gamma,
                double lambda);

}  // namespace taper
