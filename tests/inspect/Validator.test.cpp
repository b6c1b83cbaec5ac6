// SPDX-License-Identifier: Apache-2.0
//
// What single files are held against is tested by SchemaCheck.test.cpp.
#include "inspect/Validator.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "inspect/SmallRun.hpp"
#include "support/Messages.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

// The one fault of a path has all the words.
void check_one_fault(const fs::path& path, const std::vector<std::string>& words) {
  const Validation found = validate_results(path);
  CAPTURE(found.faults);
  REQUIRE(found.faults.size() == 1);
  for (const auto& word : words) CHECK_THAT(found.faults.front(), ContainsSubstring(word));
}

}  // namespace

TEST_CASE("the files of a run are looked at one by one, and agree") {
  const SmallRun run;
  const Validation found = validate_results(run.directory);
  CHECK(found.faults == std::vector<std::string>{});
  CHECK(found.notes == std::vector<std::string>{});
  REQUIRE(found.good.size() == 3);
  CHECK_THAT(found.good[0], ContainsSubstring("run.h5: taper-run 2, ") &&
                                ContainsSubstring("datasets: as in the schema"));
  CHECK_THAT(found.good[1], ContainsSubstring("metrics.jsonl: 2 lines"));
  CHECK_THAT(found.good[2],
             ContainsSubstring("rollouts: 1 file of taper-rollouts: as in the schema"));
  CHECK(validate_results(run.rollouts).good.size() == 1);
  CHECK(validate_results(run.checkpoint).faults.empty());
}

TEST_CASE("metrics of run.h5 that are not those of the log are faults") {
  const SmallRun run;
  const std::string lines = slurp(run.log);
  MetricsLog(run.log, OpenMode::kAppend).append({{"actor/loss", 1}}, 3);  // run.h5 may be behind
  CHECK(validate_results(run.directory).faults.empty());
  {
    MetricsLog other(run.log, OpenMode::kTruncate);
    other.append({{"actor/lr", 0.25}}, 1);
    other.append({{"actor/lr", 7}}, 2);
  }
  check_one_fault(run.directory, {"run.h5: /metrics/actor/lr is 0.5 in iteration 2, but 7 in ",
                                  "metrics.jsonl; taper inspect --repair"});
  spill(run.log, lines);
  MetricsLog(run.log, OpenMode::kAppend).append({{"actor/loss", 1}}, 2);
  check_one_fault(run.directory,
                  {"/metrics/actor/loss is missing, but has values from iteration 2 on"});
}

TEST_CASE("rollouts that are not those of their name or of run.h5 are faults") {
  const SmallRun run;
  const fs::path moved = run.directory / "rollouts/iter_000001.h5";
  fs::rename(run.rollouts, moved);
  check_one_fault(run.directory, {"iter_000001.h5: is of iteration 2, not that of its name"});
  fs::rename(moved, run.rollouts);
  run.write_run_file({3, 2});
  check_one_fault(run.directory,
                  {"iter_000002.h5: /response_length is not the row of iteration 2"});
}

TEST_CASE("all that is damaged is named, and what is unknown is noted") {
  const SmallRun run;
  RunFile more = RunFile::load(run.run_file);
  more.add_metrics(2, {{"my/own", 1}});
  more.save();
  spill(run.rollouts, "no HDF5 file");
  spill(run.checkpoint / "model.safetensors", "weights of iteration 3");
  const Validation found = validate_results(run.directory);
  REQUIRE(found.notes.size() == 1);
  CHECK_THAT(found.notes[0], ContainsSubstring("/metrics/my/own is not in the table of metrics"));
  REQUIRE(found.faults.size() == 2);
  CHECK_THAT(found.faults[0], ContainsSubstring("iter_000002.h5: it cannot be read"));
  CHECK_THAT(found.faults[1], ContainsSubstring("iter_000002/model.safetensors is damaged"));
}

TEST_CASE("validation needs something that has a schema") {
  const Scratch scratch;
  CHECK_THAT(message_of([&] { validate_results(scratch / "none"); }),
             ContainsSubstring("none does not exist"));
  CHECK_THAT(message_of([&] { validate_results(scratch.path()); }),
             ContainsSubstring("has nothing to validate"));
}
