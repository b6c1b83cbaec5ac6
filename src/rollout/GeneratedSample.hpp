// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/Completion.hpp"
#include "planner/LayoutPlanner.hpp"
#include "results/RolloutFile.hpp"
#include "rl/SampleSet.hpp"

namespace taper {

// Responses as samples without rewards, in their order.
std::vector<Sample> as_samples(std::vector<Completion>&& completions);

// As rollout files have them. is_cut: sampling cut tokens off, and the mass that it kept is to be
// recorded.
RolloutRecord record_of(const Sample& sample, bool is_cut);

// What Generator::learn() takes: one outcome for each sample, in their order.
std::vector<Outcome> outcomes_of(const std::vector<SampleSummary>& samples);

}  // namespace taper
