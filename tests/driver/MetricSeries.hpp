// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>
#include <vector>

#include "io/MetricsLog.hpp"

namespace taper::test {

// Figures of a fine-tuning run by step, those before the first one included.
using Series = std::vector<std::map<std::string, double>>;

inline Series metrics_of_run(const std::string& run_directory) {
  Series series;
  for (const auto& record : read_metrics_log(run_directory + "/metrics.jsonl")) {
    REQUIRE(record.iteration == std::ssize(series));
    series.emplace_back(record.values.begin(), record.values.end());
  }
  return series;
}

}  // namespace taper::test
