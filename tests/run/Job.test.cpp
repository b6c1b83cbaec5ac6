// SPDX-License-Identifier: Apache-2.0
#include "run/Job.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "io/Json.hpp"
#include "run/FakeJob.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

using Sums = std::vector<double>;

struct Fixture : FakeRuns {
  // Returns when rank 0, which writes last, has written all.
  ExitCode run(const FakeRun& fake, const std::string& resume = "auto") const {
    const ResumePoint from = find_resume_point(ranks, resume, fake.setup.directory.path());
    const ExitCode code = FakeJob(fake, ranks).run(from);
    barrier(ranks.world());
    return code;
  }
  RunStart examine(const FakeRun& fake, const std::string& resume = "auto") const {
    return FakeJob(fake, ranks)
        .examine(find_resume_point(ranks, resume, fake.setup.directory.path()),
                 CheckpointCheck::kContents);
  }
  void refuses(const FakeRun& fake, const std::string& word) const {
    CHECK_THROWS_MATCHES(examine(fake), Error, MessageMatches(ContainsSubstring(word)));
  }

  static fs::path checkpoint(const FakeRun& fake, std::int64_t iteration) {
    return fake.setup.directory.checkpoint(iteration);
  }
  static Json status(const FakeRun& fake) { return read_json_file(fake.setup.directory.status()); }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a job that goes on after a failure has the results of a straight one") {
  const FakeRun straight = fake("straight");
  CHECK(run(straight) == ExitCode::kDone);
  CHECK(sums(straight) == Sums{1, 3, 6, 10});
  CHECK(fs::exists(checkpoint(straight, 4)));
  CHECK(!fs::exists(checkpoint(straight, 2)));

  FakeRun parts = fake("parts");
  parts.setup.checkpoints.every = 2;
  parts.fails_in = 4;
  CHECK_THROWS_MATCHES(run(parts), Error, MessageMatches(ContainsSubstring("on purpose")));
  barrier(ranks.world());
  CHECK(fs::exists(checkpoint(parts, 2)));
  CHECK(status(parts)["state"] == "running");  // who runs the job says that it failed
  parts.fails_in = 0;
  CHECK(run(parts) == ExitCode::kDone);
  CHECK(sums(parts) == sums(straight));
  CHECK(status(parts)["state"] == "completed");
  CHECK(status(parts)["iteration"] == 4);
  CHECK(status(parts)["iterations"] == 4);
  CHECK(!status(parts).contains("why"));

  const std::string next = FakeJob(parts, ranks).start_text(examine(parts));
  if (ranks.rank() == 0)  // which has the state
    CHECK(next == "would find nothing to do after iteration 4 (checkpoint " +
                      checkpoint(parts, 4).string() + "): Training/Iterations is 4");
  CHECK(run(parts) == ExitCode::kDone);  // nothing is left to do
  CHECK(sums(parts) == sums(straight));
}

TEST_CASE_METHOD(Fixture, "a run goes on whatever its directory is called") {
  FakeRun r = fake("two\nlines");
  CHECK(run(r) == ExitCode::kDone);
  r.iterations = 5;
  CHECK(run(r) == ExitCode::kDone);
  CHECK(sums(r) == Sums{1, 3, 6, 10, 15});
}

TEST_CASE_METHOD(Fixture, "a stop at one rank saves what is finished, and drops what is not") {
  FakeRun r = fake("run");
  r.asked_in = 2;
  CHECK(run(r) == ExitCode::kStoppedEarly);
  CHECK(status(r)["state"] == "stopped");
  CHECK(status(r)["why"] == "SIGTERM");
  CHECK(status(r)["iteration"] == 2);
  CHECK(fs::exists(checkpoint(r, 2)));
  r.asked_in = 4;
  r.stops = StopPlace::kWithin;
  CHECK(run(r) == ExitCode::kStoppedEarly);
  CHECK(status(r)["iteration"] == 3);
  CHECK(sums(r) == Sums{1, 3, 6});
  CHECK(fs::exists(checkpoint(r, 3)));
  r.asked_in = 0;
  CHECK(run(r) == ExitCode::kDone);
  CHECK(sums(r) == Sums{1, 3, 6, 10});
}

TEST_CASE_METHOD(Fixture, "the best weights are kept, and the patience ends the run") {
  FakeRun r = fake("run");
  r.iterations = 9;
  r.scores = {{1, 0.1}, {2, 0.5}, {3, 0.4}, {4, 0.3}, {5, 0.2}};
  r.setup.checkpoints = {1, 9};
  r.setup.keep = 1;
  r.setup.best = {"val/score/mean", 2, 0.0};
  r.setup.evaluate_every = 1;
  CHECK(run(r) == ExitCode::kDone);
  CHECK(sums(r) == Sums{1, 3, 6, 10});
  CHECK(status(r)["state"] == "completed");
  CHECK(status(r)["why"] == "no more progress");
  CHECK(status(r)["iteration"] == 4);
  const fs::path file = r.setup.directory.best();
  const std::string best = slurp(file);
  const Json told = parse_json(best, "best.json");
  CHECK(told["iteration"] == 2);
  CHECK(told["value"] == 0.5);
  CHECK(told["checkpoint"] == "checkpoints/iter_000002");
  CHECK(fs::exists(checkpoint(r, 2)));
  CHECK(!fs::exists(checkpoint(r, 3)));

  const std::string next = FakeJob(r, ranks).start_text(examine(r));  // rank 0 has the state
  if (ranks.rank() == 0) {
    CHECK_THAT(next, ContainsSubstring("would find nothing to do after"));
    CHECK_THAT(next, ContainsSubstring("iter_000004): it ended early (Evaluation/Patience)"));
  }
  CHECK(run(r) == ExitCode::kDone);  // has no more progress either
  CHECK(sums(r) == Sums{1, 3, 6, 10});
  on_rank_0([&] { fs::remove_all(checkpoint(r, 4)); });
  CHECK(run(r) == ExitCode::kDone);  // from the best on
  CHECK(slurp(file) == best);
  CHECK(fs::exists(checkpoint(r, 2)));
  barrier(ranks.world());
  r.setup.best.patience = 3;
  const std::string then = FakeJob(r, ranks).start_text(examine(r));
  if (ranks.rank() == 0) CHECK_THAT(then, ContainsSubstring("would resume after"));
  CHECK(run(r) == ExitCode::kDone);
  CHECK(sums(r) == Sums{1, 3, 6, 10, 15});
}

TEST_CASE_METHOD(Fixture, "another run's checkpoint is the run's own before its first iteration") {
  FakeRun first = fake("first"), second = fake("second");
  first.setup.checkpoints.every = 2;
  CHECK(run(first) == ExitCode::kDone);
  second.asked_in = 3;
  second.stops = StopPlace::kWithin;
  CHECK(run(second, checkpoint(first, 2).string()) == ExitCode::kStoppedEarly);
  CHECK(CheckpointStore::is_checkpoint(checkpoint(second, 2)));
  on_rank_0([&] { fs::remove_all(first.setup.directory.path()); });
  second.asked_in = 0;
  CHECK(run(second) == ExitCode::kDone);
  CHECK(sums(second) == Sums{6, 10});
}

TEST_CASE_METHOD(Fixture, "a run that starts over leaves nothing of the one that it replaces") {
  FakeRun r = fake("run");
  r.scores = {{2, 0.5}};
  r.setup.best.metric = "val/score/mean";
  r.setup.evaluate_every = 2;
  CHECK(run(r) == ExitCode::kDone);
  CHECK(fs::exists(r.setup.directory.best()));
  barrier(ranks.world());
  r.asked_in = 1;
  r.stops = StopPlace::kWithin;
  CHECK(run(r, "none") == ExitCode::kStoppedEarly);
  CHECK(status(r)["iteration"] == 0);
  CHECK(sums(r).empty());
  CHECK(CheckpointStore::list(r.setup.directory.checkpoints()).empty());
  CHECK(!fs::exists(r.setup.directory.best()));
}

TEST_CASE_METHOD(Fixture, "a job finds what would stop it before it writes") {
  FakeRun r = fake("run");
  CHECK(examine(r).is_afresh());
  CHECK(!fs::exists(r.setup.directory.path()));
  CHECK(run(r) == ExitCode::kDone);
  CHECK(examine(r).checkpoint == checkpoint(r, 4));
  r.setup.seed = 2;
  refuses(r, "Run/Seed");
  r.setup.seed = 1;
  r.setup.best.metric = "val/score/mean";
  on_rank_0([&] { spill(r.setup.directory.best(), "broken"); });
  refuses(r, "best.json");
  r.setup.best.metric.clear();
  on_rank_0([&] { fs::remove_all(r.setup.directory.checkpoints()); });
  refuses(r, "results up to iteration 4 but no checkpoint");
  CHECK(examine(r, "none").is_afresh());
  CHECK(sums(r) == Sums{1, 3, 6, 10});
}
