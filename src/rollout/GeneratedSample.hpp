// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/Completion.hpp"
#include "planner/LayoutPlanner.hpp"
#include "rl/SampleSet.hpp"

namespace taper {

// A response as a sample without reward.
Sample as_sample(Completion&& completion);

// What Generator::learn() takes: one outcome for each sample, in their order.
std::vector<Outcome> outcomes_of(const std::vector<SampleSummary>& samples);

}  // namespace taper
