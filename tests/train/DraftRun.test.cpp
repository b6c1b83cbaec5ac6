// SPDX-License-Identifier: Apache-2.0
//
// Training runs whose responses are drafted.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <map>

#include "checkpoint/WriteExits.hpp"
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

TEST_CASE("exits that follow the policy change nothing of it, and resume with it") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"), '2');
  const ModelFiles files(f.path("model"));
  std::vector<std::int32_t> ids;
  for (int id = 0; id < files.valid_ids(); id += 2) ids.push_back(id);
  if (f.ranks.rank() == 0) write_exits(files, {1}, ids, f.path("exits"));
  barrier(f.ranks.world());
  RunOptions options = small_run(f.path("model"), f.path("plain"));
  options.training.iterations = 4;
  // A policy that stays what it is, and has something to say.
  options.schedule.peak = 1e-6;
  options.rollout.sampling.temperature = 0.2f;
  run(f.ranks, options);
  options.rollout.speculation.mode = SpeculationMode::kFixed;
  options.rollout.speculation.early_exits = f.path("exits");
  options.rollout.speculation.train_steps = 4;
  options.rollout.speculation.train_rate = 3e-3;
  f.run_straight_and_in_parts(options);
  if (f.ranks.rank() != 0) return;
  CHECK((f.weights("plain", 4) == f.weights("straight", 4)));
  const auto head = [&](const std::string& run, int n) {
    const auto saved = RunDirectory(f.path(run)).checkpoint(n) / kExitsPart;
    CHECK(ExitFiles(saved, "exits", files).layers() == std::vector<int>{1});
    return slurp(ExitFiles::head_directory(saved, 1) / "model.safetensors");
  };
  CHECK((head("straight", 4) == head("parts", 4)));
  CHECK((head("straight", 4) != head("straight", 1)));
  const CheckpointDirectory saved(RunDirectory(f.path("straight")).checkpoint(4));
  CHECK(saved.states().size() == 2);
  const auto first = f.metrics("straight", 1), last = f.metrics("straight", 4);
  CHECK(last.at("speculation/train_loss") < first.at("speculation/train_loss"));
  CHECK(first.contains("timing_s/update_draft"));
  CHECK(CheckpointStore::problems(RunDirectory(f.path("straight")).checkpoint(4)).empty());
}

TEST_CASE("a checkpoint with exits of other ids is resumed from with those of the run file") {
  TrainRuns f;
  make_model(f.ranks, f.path("model"), '2');
  const ModelFiles files(f.path("model"));
  const auto make = [&](int first) {
    std::vector<std::int32_t> ids;
    for (int id = first; id < first + 32; ++id) ids.push_back(id);
    if (f.ranks.rank() == 0) write_exits(files, {1}, ids, f.path("exits"));
    barrier(f.ranks.world());
  };
  RunOptions options = small_run(f.path("model"), f.path("run"));
  options.training.iterations = 1;
  options.rollout.speculation.mode = SpeculationMode::kFixed;
  options.rollout.speculation.early_exits = f.path("exits");
  options.rollout.speculation.train_steps = 1;
  options.rollout.speculation.train_rate = 1e-15;  // heads stay what they begin with
  make(0);
  run(f.ranks, options);
  make(8);
  options.training.iterations = 2;
  run(f.ranks, options, "auto");
  options.output = f.path("afresh");
  run(f.ranks, options);
  if (f.ranks.rank() != 0) return;
  const auto saved = [&](const std::string& run, int n) {
    return RunDirectory(f.path(run)).checkpoint(n) / kExitsPart;
  };
  CHECK(ExitFiles(saved("run", 1), "exits", files).ids().front() == 0);
  CHECK(ExitFiles(saved("run", 2), "exits", files).ids().front() == 8);
  const auto head = [&](const std::string& run) {
    return slurp(ExitFiles::head_directory(saved(run, 2), 1) / "model.safetensors");
  };
  CHECK((head("run") == head("afresh")));
}
