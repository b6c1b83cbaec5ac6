// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace taper {

// Learning rate over optimizer steps: linear warm-up, then constant, a cosine down to a share of
// the peak, or (WSD: warm-up, stable, decay) constant for a share of the steps and then such a
// cosine.
struct ScheduleOptions {
  enum class Kind { kConstant, kCosine, kWsd };
  Kind kind = Kind::kConstant;
  double peak = 1e-6;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;  // where the cosine ends; kConstant does not need it
  double final_share = 0.1;      // of the peak, at the end of the cosine
  double stable_share = 0.9;     // of the steps after the warm-up, for WSD

  // `section` of the run file has these options.
  std::vector<std::string> problems(const std::string& section = "Optimizer") const;
};

// The rate of step `step`, counted from 0.
double learning_rate(const ScheduleOptions& options, std::int64_t step);

}  // namespace taper
