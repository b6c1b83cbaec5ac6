// SPDX-License-Identifier: Apache-2.0
//
// Training runs whose responses are drafted.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <map>

#include "io/Hdf5File.hpp"
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

TEST_CASE("iterations that come again are drafted from what they were") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"));
  RunOptions options = small_run(f.path("model"), f.path("straight"));
  options.rollout.speculation.mode = SpeculationMode::kAuto;
  options.training.iterations = 3;
  options.checkpoint.every = 3;
  run(f.ranks, options);
  // As a kill leaves it: rollouts of iterations 1 and 2, and no checkpoint.
  options.output = f.path("again");
  options.training.iterations = 2;
  options.checkpoint.every = 3;
  run(f.ranks, options);
  const RunDirectory directory(f.path("again"));
  if (f.ranks.rank() == 0) std::filesystem::remove_all(directory.checkpoints());
  barrier(f.ranks.world());
  options.training.iterations = 3;
  run(f.ranks, options, "auto");
  if (f.ranks.rank() != 0) return;
  CHECK_FALSE(std::filesystem::exists(directory.journal()));
  CHECK((f.weights("straight", 3) == f.weights("again", 3)));
  for (int n = 1; n <= 3; ++n) CHECK(f.rollouts("straight", n) == f.rollouts("again", n));
  const Hdf5File file = Hdf5File::open_read(directory.run_file());
  const auto sources = file.read_strings("/draft_sources/source");
  const auto accepted = file.read<std::int64_t>("/draft_sources/accepted").values,
             drafted = file.read<std::int64_t>("/draft_sources/drafted").values,
             steps = file.read<std::int64_t>("/draft_sources/step").values;
  std::vector<std::int64_t> iterations;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] != "journal") continue;
    iterations.push_back(steps[i]);
    // The token that ends a response is drawn whether it is drafted or not, and does not count.
    CHECK(drafted[i] > 16);
    CHECK(accepted[i] <= drafted[i]);
    CHECK(accepted[i] >= drafted[i] - 16);
  }
  CHECK(iterations == std::vector<std::int64_t>{1, 2});
}
