// SPDX-License-Identifier: Apache-2.0
#include "results/RunDirectory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using taper::test::Scratch;
using taper::test::slurp;
using taper::test::spill;
namespace fs = std::filesystem;

TEST_CASE("names of iterations are read back, also beyond six digits") {
  for (const std::int64_t iteration : {0, 7, 999'999, 1'000'000, 123'456'789}) {
    INFO(iteration_name(iteration));
    CHECK(iteration_of_name(iteration_name(iteration)) == iteration);
  }
  CHECK(iteration_name(12) == "iter_000012");
  CHECK(iteration_name(1'000'000) == "iter_1000000");
}

TEST_CASE("other names are none of an iteration") {
  for (const char* name :
       {"", "iter_", "iter_12", "iter_0000012", "iter_-00012", "iter_+00012", "iter_000012.old",
        "iter_000012 ", "iter_00001x", "Iter_000012", "iter_99999999999999999999"}) {
    INFO(name);
    CHECK(!iteration_of_name(name));
  }
}

TEST_CASE("what belongs to iterations is found by ending and type, in their order") {
  const Scratch scratch;
  CHECK(iteration_entries(scratch / "nothing", "", fs::file_type::directory).empty());
  for (const char* name :
       {"iter_1000000", "iter_000002", "iter_999999", "iter_000003.old", "notes"})
    fs::create_directories(scratch / name);
  spill(scratch / "iter_000004", "");
  spill(scratch / "iter_000004.old", "");
  const auto folders = [&](const char* ending) {
    std::vector<std::int64_t> iterations;
    for (const auto& entry : iteration_entries(scratch.path(), ending, fs::file_type::directory))
      iterations.push_back(entry.iteration);
    return iterations;
  };
  CHECK(folders("") == std::vector<std::int64_t>{2, 999'999, 1'000'000});
  CHECK(folders(".old") == std::vector<std::int64_t>{3});
  const auto files = iteration_entries(scratch.path(), ".old", fs::file_type::regular);
  REQUIRE(files.size() == 1);
  CHECK(files.front().path == scratch / "iter_000004.old");
}

// Users and their scripts know these names, and old runs have them.
TEST_CASE("results keep their names") {
  const RunDirectory run(fs::path("a/run"));
  CHECK(run.path() == "a/run");
  CHECK(run.metrics() == "a/run/metrics.jsonl");
  CHECK(run.run_file() == "a/run/run.h5");
  CHECK(run.status() == "a/run/status.json");
  CHECK(run.best() == "a/run/best.json");
  CHECK(run.lock() == "a/run/run.lock");
  CHECK(run.checkpoints() == "a/run/checkpoints");
  CHECK(run.rollouts() == "a/run/rollouts");
  CHECK(run.reward_logs() == "a/run/reward_logs");
  const CheckpointDirectory checkpoint(run.checkpoint(12));
  CHECK(checkpoint.path() == "a/run/checkpoints/iter_000012");
  CHECK(checkpoint.manifest() == "a/run/checkpoints/iter_000012/manifest.json");
  CHECK(checkpoint.state() == "a/run/checkpoints/iter_000012/state.h5");
  CHECK(checkpoint.part(kCriticPart).state() == "a/run/checkpoints/iter_000012/critic/state.h5");
}

TEST_CASE("the file of an iteration has six digits, or as many as it needs") {
  const RunDirectory run(fs::path("run"));
  CHECK(run.rollout(12) == fs::path("run/rollouts/iter_000012.h5"));
  CHECK(run.rollout(1234567) == fs::path("run/rollouts/iter_1234567.h5"));
}

TEST_CASE("what has the name of a result is one") {
  const Scratch scratch;
  CHECK_NOTHROW(RunDirectory(scratch / "new").require_places());
  const std::set<std::string> folders{"checkpoints", "rollouts", "reward_logs"};
  const std::set<std::string> files{"metrics.jsonl", "run.h5", "status.json", "best.json",
                                    "run.lock"};
  for (const auto* names : {&folders, &files})
    for (const auto& name : *names) {
      const RunDirectory run(scratch / ("run-" + name));
      const fs::path place = run.path() / name;
      fs::create_directories(place);
      if (names == &folders) {
        CHECK_NOTHROW(run.require_places());
        fs::remove(place);
        spill(place, "");
      }
      CHECK_THROWS_WITH(run.require_places(), ContainsSubstring(place.string() + " is ") &&
                                                  ContainsSubstring("directory"));
    }
}

TEST_CASE("rollouts of later iterations go, and nothing else") {
  const Scratch scratch;
  const RunDirectory run(scratch.path());
  const fs::path folder = run.rollouts();
  fs::create_directories(folder);
  const std::set<std::string> stay{"iter_000002.h5",     "iter_000009.h5",  "iter_000009.h5.part",
                                   "notes.txt",          "iter_000011",     "iter_11.h5",
                                   "iter_000011.h5.bak", "iter_-000011.h5", "zebra.h5"};
  const std::set<std::string> go{"iter_000010.h5", "iter_000010.h5.part", "iter_1000000.h5"};
  for (const auto* names : {&stay, &go})
    for (const auto& name : *names) spill(folder / name, "");
  fs::create_directories(folder / "plots/inner");
  fs::create_directories(folder / "iter_000012.h5");  // a folder of that name is not ours
  run.remove_rollouts_after(9);
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) left.insert(entry.path().filename().string());
  CHECK(left == stay);
  CHECK(fs::exists(folder / "plots/inner"));
  CHECK(fs::exists(folder / "iter_000012.h5"));
}

TEST_CASE("rollouts of later iterations become a journal, until these are finished") {
  const Scratch scratch;
  const RunDirectory run(scratch.path());
  run.move_rollouts_to_journal(0);
  run.remove_journal(9);
  CHECK_FALSE(fs::exists(run.journal()));
  fs::create_directories(run.rollouts());
  for (const int i : {1, 2, 3, 4}) spill(run.rollout(i), std::to_string(i));
  spill(run.rollouts() / "iter_000004.h5.part", "");
  run.move_rollouts_to_journal(2);
  CHECK(rollout_files(run.rollouts()).size() == 2);
  CHECK(rollout_files(run.journal()).size() == 2);
  CHECK(slurp(run.journal(4)) == "4");
  // Again, from a job that came as far as iteration 3.
  spill(run.rollout(3), "new");
  run.move_rollouts_to_journal(2);
  CHECK(slurp(run.journal(3)) == "new");
  run.remove_journal(3);
  CHECK_FALSE(fs::exists(run.journal(3)));
  CHECK(fs::exists(run.journal(4)));
  run.remove_journal(4);
  CHECK_FALSE(fs::exists(run.journal()));
}

TEST_CASE("rollout files are listed in the order of their iterations") {
  const Scratch scratch;
  CHECK(rollout_files(scratch / "nothing").empty());
  for (const char* name : {"iter_1000000.h5", "iter_000010.h5", "iter_999999.h5", "iter_000002.h5",
                           "iter_000003.h5.part", "notes.h5"})
    spill(scratch / name, "");
  std::vector<std::string> names;
  for (const auto& path : rollout_files(scratch.path())) names.push_back(path.filename());
  CHECK(names == std::vector<std::string>{"iter_000002.h5", "iter_000010.h5", "iter_999999.h5",
                                          "iter_1000000.h5"});
}
