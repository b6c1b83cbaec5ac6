// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/MetricValues.hpp"
#include "results/RunFile.hpp"
#include "rollout/GenerationReport.hpp"

namespace taper {

// Totals of the generations of an iteration on this rank: adaptive/switches,
// adaptive/switch_time_s, ...
MetricValues adaptive_metrics(std::span<const GenerationReport> reports);

// Adds the accounts of the generations of an iteration to the run file: tables layout_generations
// (the layouts at start and end), layout_consultations (what was seen and chosen), layout_prices
// (every candidate of every decision that had any), layout_switches (predicted and measured cost by
// part) and layout_accounts (the whole generation, measured, predicted and replayed). Times in
// seconds.
void add_generations(RunFile& file, std::int64_t iteration,
                     std::span<const GenerationReport> reports);

}  // namespace taper
