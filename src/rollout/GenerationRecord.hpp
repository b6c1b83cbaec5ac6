// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/MetricValues.hpp"
#include "results/RunFile.hpp"
#include "rollout/GenerationReport.hpp"
#include "rollout/GeneratorOptions.hpp"

namespace taper {

// Totals of the generations of an iteration: adaptive/switches, adaptive/switch_time_s, ... on this
// rank, if the layout may change; speculation/tokens_per_step, ... of all replicas, if there are
// drafts.
MetricValues generation_metrics(const GeneratorOptions& options,
                                std::span<const GenerationReport> reports);

// Adds the accounts of the generations of an iteration to the run file. If the layout may change,
// tables layout_generations (the layouts at start and end), layout_consultations (what was seen and
// chosen), layout_prices (every candidate of every decision that had any), layout_switches
// (predicted and measured cost by part) and layout_accounts (the whole generation, measured,
// predicted and replayed); if there are drafts, draft_batches and draft_sources. Times in seconds.
void add_generations(RunFile& file, std::int64_t iteration, const GeneratorOptions& options,
                     std::span<const GenerationReport> reports);

}  // namespace taper
