// SPDX-License-Identifier: Apache-2.0
#include "rollout/RecordedTraces.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "results/RunDirectory.hpp"
#include "results/RunFile.hpp"
#include "support/RecordedRun.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Fixture {
  test::Scratch scratch;
  std::filesystem::path run = scratch / "run";

  Fixture() { std::filesystem::create_directories(RunDirectory(run).rollouts()); }

  void write(int iteration, const std::vector<int>& lengths) const {
    test::write_recorded(run, iteration, lengths);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "generations of a run are read with their lengths and one limit") {
  write(1, {5, 6, 7, 8, 1, 2, 3, 40});
  write(2, {5, 6, 7, 8, 1, 2, 3, 4});
  const auto traces = read_traces("--run", run, 64);
  REQUIRE(traces.size() == 2);
  CHECK(traces[1].work.iteration == 2);
  CHECK(traces[0].work.samples == 4);
  CHECK(traces[0].work.sequences == 8);
  CHECK(traces[0].work.prompt_tokens == 8 * 20);
  CHECK(traces[0].work.slots_per_rank == 64);
  CHECK(traces[0].work.max_new_tokens == 40);
  CHECK(traces[1].work.max_new_tokens == 40);
  CHECK(traces[0].outcomes[6].prompt == 20);
  CHECK(traces[0].outcomes[6].response == 3);
}

TEST_CASE_METHOD(Fixture, "iterations are read in their order, and other files let alone") {
  write(1000000, {5, 6, 7, 8});
  write(999999, {5, 6, 7, 8});
  std::ofstream(RunDirectory(run).rollouts() / "selected.h5") << "a user's";
  for (const auto& path : {run, RunDirectory(run).rollouts()}) {
    const auto traces = read_traces("--run", path, 64);
    REQUIRE(traces.size() == 2);
    CHECK(traces[0].work.iteration == 999999);
    CHECK(traces[1].work.iteration == 1000000);
  }
}

TEST_CASE_METHOD(Fixture, "a run without rollouts is named with the option that named it") {
  CHECK_THROWS_WITH(read_traces("--lengths", run, 64), ContainsSubstring("--lengths is "));
  CHECK_THROWS_WITH(read_traces("--lengths", run / "missing", 64), ContainsSubstring("--lengths"));
}

TEST_CASE_METHOD(Fixture, "a run without drafts has no table of them") {
  CHECK(read_drafts(run).empty());
}

TEST_CASE_METHOD(Fixture, "sizes of batch in which hardly anything was drafted are known as such") {
  RunFile file(RunDirectory(run).run_file());
  const auto add = [&](std::int64_t least, std::int64_t sequences, std::int64_t drafted) {
    file.add_record("draft_batches", 1,
                    {{"least_batch", least},
                     {"sequences", sequences},
                     {"drafted", drafted},
                     {"accepted", drafted},
                     {"time_s", 1.0},
                     {"model_s", 0.0}});
  };
  add(1, 100, 300);
  add(64, 6400, 3);
  file.save();
  const DraftTable drafts = read_drafts(run);
  CHECK(drafts.shares(1).drafted[2] == DraftShares::kShareOne);
  CHECK(drafts.shares(64).drafted[0] <= 1);
  CHECK(drafts.shares(64).drafted[2] == 0);
}
