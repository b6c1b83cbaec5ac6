// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/MetricsLog.hpp"
#include "results/RunFile.hpp"
#include "rollout/Generator.hpp"

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

// One line for people: "layout 1x2, then 2x1 at 3.2 s (...)".
std::string summary(const GenerationReport& report);

}  // namespace taper
