// SPDX-License-Identifier: Apache-2.0
#include "optim/Schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/Text.hpp"

namespace taper {

std::vector<std::string> ScheduleOptions::problems(const std::string& section) const {
  std::vector<std::string> list;
  const auto refuse = [&](const char* parameter, const std::string& value, const char* why) {
    list.push_back(section + "/" + parameter + " is " + value + " (" + why + ")");
  };
  if (!(peak >= 0.0)) refuse("Learning Rate", format_text("%g", peak), "it must not be negative");
  if (warmup_steps < 0)
    refuse("Warmup Steps", std::to_string(warmup_steps), "it must not be negative");
  if (kind != Kind::kConstant && total_steps <= warmup_steps)
    list.push_back(section + "/Total Steps is " + std::to_string(total_steps) + " and " + section +
                   "/Warmup Steps " + std::to_string(warmup_steps) + " (with " + section +
                   "/Schedule " + (kind == Kind::kCosine ? "cosine" : "wsd") +
                   " the rate falls between them); raise " + section +
                   "/Total Steps to the optimizer steps of the run");
  if (!(final_share >= 0.0 && final_share <= 1.0))
    refuse("Final Share", format_text("%g", final_share), "it must be in [0, 1]");
  if (!(stable_share >= 0.0 && stable_share <= 1.0))
    refuse("Stable Share", format_text("%g", stable_share), "it must be in [0, 1]");
  return list;
}

double learning_rate(const ScheduleOptions& o, std::int64_t step) {
  if (step < o.warmup_steps)
    return o.peak * static_cast<double>(step + 1) / static_cast<double>(o.warmup_steps);
  if (o.kind == ScheduleOptions::Kind::kConstant) return o.peak;
  const std::int64_t behind = o.total_steps - o.warmup_steps;
  const std::int64_t stable =
      o.kind == ScheduleOptions::Kind::kWsd
          ? static_cast<std::int64_t>(static_cast<double>(behind) * o.stable_share)
          : 0;
  const std::int64_t at = step - o.warmup_steps - stable;
  if (at < 0) return o.peak;
  const double span = static_cast<double>(std::max<std::int64_t>(1, behind - stable));
  const double progress =
      step >= o.total_steps ? 1.0 : std::min(1.0, static_cast<double>(at) / span);
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return o.peak * (o.final_share + (1.0 - o.final_share) * cosine);
}

}  // namespace taper
