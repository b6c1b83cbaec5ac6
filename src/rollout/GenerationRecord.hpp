// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/MetricsLog.hpp"
#include "results/RunFile.hpp"
#include "rl/SampleSet.hpp"
#include "rollout/Generator.hpp"

namespace taper {

// A layout as one number: the degrees of its groups as digits, 422 for 4+2+2, while it has at most
// 15 groups of less than 10 ranks; else minus (1,000,000 x the largest degree + the number of
// groups).
double layout_code(const Layout& layout);

// Totals of the generations of an iteration on this rank: adaptive/switches,
// adaptive/switch_time_s, ...; the first layout of the first one, the last of the last. At least
// one.
MetricValues adaptive_metrics(std::span<const GenerationReport> reports);

// Adds the accounts of the generations of an iteration to the run file: tables layout_consultations
// (what was seen and chosen), layout_prices (every candidate of every decision that had any),
// layout_switches (predicted and measured cost by part) and layout_accounts (the whole generation,
// measured, predicted and replayed). Times in seconds.
void add_generations(RunFile& file, std::int64_t iteration,
                     std::span<const GenerationReport> reports);

// What the planner learns from: one outcome for each sample, in their order.
std::vector<Outcome> outcomes_of(const std::vector<SampleSummary>& samples);

// One line for people: "layout 1x2, then 2x1 at 3.2 s (...)".
std::string summary(const GenerationReport& report);

}  // namespace taper
