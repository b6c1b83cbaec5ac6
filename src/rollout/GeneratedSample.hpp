// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/Completion.hpp"
#include "planner/LayoutPlanner.hpp"
#include "rl/SampleSet.hpp"

namespace taper {

// Responses as samples without rewards, in their order.
std::vector<Sample> as_samples(std::vector<Completion>&& completions);

// What Generator::learn() takes: one outcome for each sample, in their order.
std::vector<Outcome> outcomes_of(const std::vector<SampleSummary>& samples);

}  // namespace taper
