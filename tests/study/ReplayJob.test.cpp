// SPDX-License-Identifier: Apache-2.0
#include "study/ReplayJob.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/Error.hpp"
#include "io/Json.hpp"
#include "profile/ProfileFile.hpp"
#include "results/RunDirectory.hpp"
#include "results/RunFile.hpp"
#include "support/RecordedRun.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

struct Fixture {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / "taper_replay_test";
  ReplayOptions options;

  Fixture() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder / "run" / "rollouts");
    write_profile(folder / "profile.h5", test::synthetic_profile(test::small_model_tcp(), {1, 2}));
    options.profile = folder / "profile.h5";
    options.seeds = 1;
    options.iterations = 2;
    options.sequences = 48;
    options.account.grid = 8;
  }
  ~Fixture() { std::filesystem::remove_all(folder); }

  void write(int iteration, const std::vector<int>& lengths,
             const std::vector<std::int64_t>& stream = {}) {
    test::write_recorded(folder / "run", iteration, lengths, stream);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "laws are replayed and tabulated") {
  options.laws = {LengthLaw::kHeavyTail, LengthLaw::kTruncated};
  const auto results = replay(options);
  REQUIRE(results.size() == 2);
  CHECK(results[0].name == "heavy-tail");
  CHECK(results[0].summary.generations == 2);
  CHECK(results[1].summary.switches == 0);
  const std::string table = to_table(results);
  CHECK(table.find("heavy-tail") != std::string::npos);
  CHECK(table.find("truncated") != std::string::npos);
  // Each column of the first line is explained below the table.
  std::istringstream head(table.substr(0, table.find('\n')));
  for (std::string column; head >> column;)
    if (column != "below" && column != "q")
      CHECK_THAT(table, Catch::Matchers::ContainsSubstring("\n" + column + " "));
  CHECK_THAT(table, Catch::Matchers::ContainsSubstring("\nbelow q "));
  const std::string lines = to_json_lines(results);
  const Json first = parse_json(lines.substr(0, lines.find('\n')), "account");
  CHECK(first["name"] == "heavy-tail");
  CHECK(first["adaptive_ns"] == results[0].runs[0][0].adaptive.time_ns);
  CHECK(first["static_ns"].size() == 2);
}

TEST_CASE_METHOD(Fixture, "generations of the warm-up are played but not accounted") {
  options.laws = {LengthLaw::kHeavyTail};
  options.iterations = 4;
  const auto all = replay(options).front();
  options.iterations = 2;
  options.account.warm_up = 2;
  const auto later = replay(options).front();
  REQUIRE(later.runs[0].size() == 2);
  CHECK(later.summary.generations == 2);
  for (int i = 0; i < 2; ++i) {
    CHECK(later.runs[0][i].iteration == 2 + i);
    CHECK(later.runs[0][i].adaptive.time_ns == all.runs[0][2 + i].adaptive.time_ns);
  }
  options.laws = {};
  write(1, {5, 6, 7, 8});
  options.runs = {folder / "run"};
  CHECK_THROWS_WITH(replay(options), Catch::Matchers::ContainsSubstring("--warm-up"));
}

TEST_CASE_METHOD(Fixture, "recorded runs are replayed, up to their longest response") {
  for (int i = 1; i <= 2; ++i) write(i, draw_lengths(LengthLaw::kHeavyTail, 1, i, 24, 300));
  options.runs = {folder / "run"};
  CHECK(replay(options).front().summary.generations == 2);
  options.max_new_tokens = 10;
  CHECK_THROWS_WITH(replay(options), Catch::Matchers::ContainsSubstring("--max-new-tokens is 10"));
}

TEST_CASE_METHOD(Fixture, "bad input is named") {
  REQUIRE(options.problems().size() == 1);  // neither runs nor laws
  CHECK_THAT(options.problems().front(), Catch::Matchers::ContainsSubstring("--run") &&
                                             Catch::Matchers::ContainsSubstring("--law"));
  options.runs = {folder / "run"};
  CHECK_THROWS_AS(replay(options), Error);  // no rollouts in it
  options.runs = {};
  options.laws = {LengthLaw::kTruncated};
  options.seeds = 0;
  REQUIRE(options.problems().size() == 1);
  CHECK_THAT(options.problems().front(), Catch::Matchers::ContainsSubstring("--seeds is 0"));
  options.seeds = 1;
  options.planner.degrees = {1, 4};
  CHECK_THROWS_AS(replay(options), Error);
  options.planner.degrees = {};
  options.laws = {};
  options.runs = {folder / "no where"};
  CHECK_THROWS_WITH(replay(options), Catch::Matchers::ContainsSubstring("--run is '"));
  options.runs = {};
  options.laws = {LengthLaw::kTruncated};
  options.profile = folder / "missing.h5";
  CHECK_THROWS_AS(replay(options), Error);
}

TEST_CASE_METHOD(Fixture, "a run with drafts is replayed with drafts") {
  options.runs = {(folder / "run").string()};
  options.account.warm_up = 0;
  for (int i = 1; i <= 2; ++i) write(i, std::vector<int>(24, 60));
  const std::int64_t plain = replay(options)[0].runs[0][1].static_ns[0];
  RunFile run(RunDirectory(folder / "run").run_file());
  const auto record = [&](double seconds, double model_seconds) {
    for (const std::int64_t batch : {1, 8})
      run.add_record("draft_batches", 1,
                     {{"generation", std::int64_t{0}},
                      {"least_batch", batch},
                      {"steps", std::int64_t{10}},
                      {"sequences", 10 * batch},
                      {"drafted", 40 * batch},
                      {"accepted", 30 * batch},
                      {"time_s", seconds},
                      {"model_s", model_seconds}});
    run.save();
  };
  record(1.0, 0.0);
  // Three tokens more for four rows more, each of which costs as much as a sequence here.
  const std::int64_t with = replay(options)[0].runs[0][1].static_ns[0];
  CHECK(with < plain * 97 / 100);
  CHECK(with > plain / 4);
  // A draft model that takes a hundred times as long as all else is not worth it.
  record(100.0, 99.99);
  CHECK(replay(options)[0].runs[0][1].static_ns[0] == plain);
}

TEST_CASE_METHOD(Fixture, "rounds of tail batching are played over laws and runs") {
  options.laws = {LengthLaw::kStraggler};
  options.iterations = 3;
  options.samples = 4;
  const std::string table = replay_rounds(options);
  for (const char* name : {"straggler", "plain", "1.25", "by price"})
    CHECK_THAT(table, Catch::Matchers::ContainsSubstring(name));
  std::istringstream head(table.substr(0, table.find('\n')));
  for (std::string column; head >> column;)
    if (column != "iter." && column != "lengths")
      CHECK_THAT(table, Catch::Matchers::ContainsSubstring("\n" + column + " "));
  options.laws = {};
  options.runs = {folder / "run"};
  for (int i = 1; i <= 2; ++i) write(i, draw_lengths(LengthLaw::kHeavyTail, 1, i, 24, 300));
  CHECK_THROWS_WITH(replay_rounds(options), Catch::Matchers::ContainsSubstring("too few"));
  for (int i = 3; i <= 12; ++i) write(i, draw_lengths(LengthLaw::kHeavyTail, 1, i, 24, 300));
  CHECK_THAT(replay_rounds(options), Catch::Matchers::ContainsSubstring("plain"));
  write(13, {1, 2, 3, 4});
  CHECK_THROWS_WITH(replay_rounds(options), Catch::Matchers::ContainsSubstring("generation 13"));
}

TEST_CASE_METHOD(Fixture, "what rounds have kept is no generation") {
  write(1, {5, 6, 7, 8}, {3});
  options.runs = {folder / "run"};
  CHECK_THROWS_WITH(replay(options), Catch::Matchers::ContainsSubstring("Rollout/Rounds plain"));
}
