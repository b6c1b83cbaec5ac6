// SPDX-License-Identifier: Apache-2.0
//
// Whole iterations on described machines: what training takes beside the generation, and where
// models are best placed.
#pragma once

#include <string>
#include <vector>

#include "placement/PlacementCosts.hpp"
#include "planner/Replay.hpp"
#include "study/SimulateOptions.hpp"

namespace taper {

// The prices of an iteration of the described models over the samples of the trace, on all blocks
// of the machine; the generation in static layouts of the degrees.
PlacementCosts price_case(const SimulateOptions& options, const ReplayTrace& trace,
                          const std::vector<int>& degrees);

// The share of a generation of so many nanoseconds in an iteration with all models on all ranks,
// each call at the degree that is best for it. Throws Error if the models do not fit in memory.
double generation_share(const PlacementCosts& costs, double generation_ns);

// The three published strategies and the best placement of a case, as a row of a table.
std::string placement_head();
std::string placement_row(const SimulateOptions& options, const std::string& name);

}  // namespace taper
