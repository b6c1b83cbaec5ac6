// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace taper {

// What stands beside a metric or the time of a phase in run.h5.
struct MetricMeaning {
  std::string name;  // "actor/lr"; of a phase "gen"
  std::string units;
  std::string description;
};

// The metrics of a training run, in the order of doc/results-schema.md.
const std::vector<MetricMeaning>& metric_table();
// The phases of an iteration, whose times are in /timing and, as timing_s/<phase>, metrics.
const std::vector<MetricMeaning>& phase_table();

// The entry of a dataset of run.h5 by its full path, /metrics/<name> or /timing/<phase>; null for
// others and for names that are not listed. Rewards are listed as reward/<name>/..., also those of
// held-out responses (val/reward/<name>/...).
const MetricMeaning* meaning_of(const std::string& dataset);

}  // namespace taper
