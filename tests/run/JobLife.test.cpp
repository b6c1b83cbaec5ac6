// SPDX-License-Identifier: Apache-2.0
//
// On ranks that are there already; whole commands are run by tests/faults.
#include "run/JobLife.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "io/Json.hpp"
#include "run/FakeJob.hpp"
#include "support/CapturedLog.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

struct Fixture : FakeRuns {
  using Purpose = JobLife::Purpose;

  // A command, from its configuration on.
  ExitCode live(const FakeRun& fake, Purpose purpose = Purpose::kRun,
                const std::string& config = "", const StopRequest* stop = nullptr) const {
    const RunDirectory& directory = fake.setup.directory;
    const JobLife life{.directory = directory,
                       .status = StatusFile(directory, fake.iterations),
                       .outputs = {{"Output/Directory run", directory.lock()}},
                       .config = config,
                       .resume = "auto",
                       .stop = stop,
                       .purpose = purpose};
    FailureNote note(life.status);
    const ExitCode code = life.live_on(
        ranks, note, [&](const Ranks& there) { return std::make_unique<FakeJob>(fake, there); });
    CHECK(!note.armed);
    barrier(ranks.world());
    return code;
  }

  // All files of a run and what they contain.
  static std::map<std::string, std::string> contents(const FakeRun& fake) {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(fake.setup.directory.path()))
      if (entry.is_regular_file()) found[entry.path().string()] = slurp(entry.path());
    return found;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a check leaves nothing behind, before a run and after it") {
  FakeRun r = fake("run");
  CHECK(live(r, Purpose::kCheck) == ExitCode::kDone);
  CHECK(!fs::exists(r.setup.directory.path()));
  CHECK(live(r) == ExitCode::kDone);
  const auto before = contents(r);
  barrier(ranks.world());
  r.iterations = 6;
  CHECK(live(r, Purpose::kCheck) == ExitCode::kDone);
  CHECK(contents(r) == before);
}

TEST_CASE_METHOD(Fixture, "a deadline that has passed is told at the start") {
  const FakeRun r = fake("run");
  const auto log = [&](double deadline) {
    StopRequest stop;
    stop.set_deadline(deadline);
    return logged_by([&] { CHECK(live(r, Purpose::kCheck, "", &stop) == ExitCode::kDone); });
  };
  const std::string late = log(0.0), early = log(1e300);
  const std::string told = "the deadline of this job has already passed";
  CHECK((late.find(told) != std::string::npos) == (ranks.rank() == 0));
  CHECK(early.find(told) == std::string::npos);
}

TEST_CASE_METHOD(Fixture, "a job that ends gives its outputs back") {
  const FakeRun r = fake("run");
  CHECK(live(r) == ExitCode::kDone);
  CHECK(!fs::exists(r.setup.directory.lock()));
  CHECK(sums(r) == std::vector<double>{1, 3, 6, 10});
}

TEST_CASE_METHOD(Fixture, "the reason of a failure is in status.json") {
  FakeRun r = fake("run");
  r.fails_in = 3;
  CHECK_THROWS_MATCHES(live(r), Error, MessageMatches(ContainsSubstring("on purpose")));
  barrier(ranks.world());
  const Json status = read_json_file(r.setup.directory.status());
  CHECK(status["state"] == "failed");
  CHECK(status["iteration"] == 2);
  CHECK_THAT(status["why"].get<std::string>(), ContainsSubstring("on purpose"));
}

TEST_CASE_METHOD(Fixture, "what is wrong before the run leaves no status") {
  FakeRun r = fake("run");
  r.setup.directory = scratch / "file" / "run";
  on_rank_0([&] { spill(scratch / "file", "no directory"); });
  CHECK_THROWS_AS(live(r), Error);
  barrier(ranks.world());
  CHECK(fs::is_regular_file(scratch / "file"));
  if (ranks.size() == 1) return;
  r.setup.directory = scratch / "run";
  CHECK_THROWS_MATCHES(live(r, Purpose::kRun, std::to_string(ranks.rank())), Error,
                       MessageMatches(ContainsSubstring("the configuration")));
  CHECK(!fs::exists(r.setup.directory.path()));
}
