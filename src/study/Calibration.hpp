// SPDX-License-Identifier: Apache-2.0
//
// How well a description foretells what was measured. Nothing is fitted.
#pragma once

#include <string>
#include <vector>

#include "planner/LatencyProfile.hpp"
#include "simulate/MachineDescription.hpp"

namespace taper {

// Relative error, described / measured - 1, of the steps of one kind at one degree.
struct StepErrors {
  int tp = 1;
  bool prompts = false;        // steps that read prompts; else one token per sequence
  std::vector<double> errors;  // ascending

  double quantile(double share) const;           // signed
  double absolute_quantile(double share) const;  // of the size
};

// Throws Error if the profile is of another model shape or number of ranks.
std::vector<StepErrors> calibrate(const MachineDescription& machine, const ModelDescription& model,
                                  const LatencyProfile& measured);

std::string to_table(const std::vector<StepErrors>& errors);

}  // namespace taper
