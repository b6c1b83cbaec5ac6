// SPDX-License-Identifier: Apache-2.0
//
// Training runs whose responses are drafted.
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "train/TrainRuns.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("a run with drafts is the one without") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"), '2');
  std::string weights;
  std::vector<std::map<std::string, double>> losses;
  double drafted = 0;
  for (const auto mode : {SpeculationMode::kOff, SpeculationMode::kFixed, SpeculationMode::kAuto}) {
    RunOptions options = small_run(f.path("model"), f.path("run"));
    options.training.iterations = 3;
    options.rollout.sampling.temperature = 0.1f;  // responses repeat themselves
    options.rollout.speculation.mode = mode;
    run(f.ranks, options);
    if (f.ranks.rank() != 0) continue;
    std::vector<std::map<std::string, double>> now;
    for (const auto& record : read_metrics_log(f.path("run") + "/metrics.jsonl")) {
      std::map<std::string, double> values(record.values.begin(), record.values.end());
      CHECK(values.contains("speculation/drafted") == (mode != SpeculationMode::kOff));
      if (mode == SpeculationMode::kFixed) drafted += values.at("speculation/drafted");
      std::erase_if(values, [](const auto& v) {
        return v.first.starts_with("perf/") || v.first.starts_with("timing_s/") ||
               v.first.starts_with("speculation/");
      });
      now.push_back(std::move(values));
    }
    REQUIRE(now.size() == 3);
    if (losses.empty()) {
      weights = f.weights("run", 3);
      losses = now;
    }
    CHECK(now == losses);
    CHECK((f.weights("run", 3) == weights));
  }
  if (f.ranks.rank() == 0) CHECK(drafted > 0);
}
