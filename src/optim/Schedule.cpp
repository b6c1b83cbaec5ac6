// SPDX-License-Identifier: Apache-2.0
#include "optim/Schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace taper {

std::vector<std::string> ScheduleOptions::problems() const {
  std::vector<std::string> list;
  if (!(peak >= 0.0)) list.push_back("the learning rate must not be negative");
  if (warmup_steps < 0) list.push_back("warm-up steps must not be negative");
  if (kind == Kind::kCosine && total_steps <= warmup_steps)
    list.push_back("a cosine schedule needs more total steps than warm-up steps");
  if (!(final_share >= 0.0 && final_share <= 1.0))
    list.push_back("the final share must be in [0, 1]");
  return list;
}

double learning_rate(const ScheduleOptions& o, std::int64_t step) {
  if (step < o.warmup_steps)
    return o.peak * static_cast<double>(step + 1) / static_cast<double>(o.warmup_steps);
  if (o.kind == ScheduleOptions::Kind::kConstant) return o.peak;
  const double span = static_cast<double>(o.total_steps - o.warmup_steps);
  const double progress = std::min(1.0, static_cast<double>(step - o.warmup_steps) / span);
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return o.peak * (o.final_share + (1.0 - o.final_share) * cosine);
}

}  // namespace taper
