// SPDX-License-Identifier: Apache-2.0
#include "run/IterationLog.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>

#include "io/Hdf5File.hpp"
#include "support/CapturedLog.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using taper::test::logged_by;
using taper::test::Scratch;

TEST_CASE("a flush brings all iterations so far into run.h5") {
  const Scratch scratch;
  IterationLog log(scratch.path(), "config", {}, 0);
  for (const int iteration : {1, 2, 3})  // faster than the file is written by itself
    log.add(iteration, {{"training/global_step", iteration}}, {{"gen", 1.0, 1.0, 1.0}}, {2});
  log.flush();
  const auto file = Hdf5File::open_read(scratch / "run.h5");
  CHECK(file.dims("/timing/gen") == Dims{3, 3});
  CHECK(file.dims("/metrics/training/global_step") == Dims{3});
}

TEST_CASE("a final evaluation counts until the next iteration") {
  const Scratch scratch;
  {
    IterationLog log(scratch.path(), "config", {}, 0);
    log.add(1, {{"training/global_step", 1.0}}, {}, {0});
    CHECK(!log.has_final_evaluation());
    log.add_final_evaluation(1, {{"val/score/mean", 0.5}});
    log.flush();
  }
  IterationLog log(scratch.path(), "config", {}, 1);
  CHECK(log.has_final_evaluation());
  log.add(2, {{"training/global_step", 2.0}}, {}, {0});
  CHECK(!log.has_final_evaluation());
}

TEST_CASE("a log of metrics that was removed is told") {
  const Scratch scratch;
  CHECK(IterationLog::lost_metrics(scratch.path(), "iteration").empty());
  IterationLog(scratch.path(), "config", {}, 0).flush();
  CHECK(IterationLog::lost_metrics(scratch.path(), "iteration").empty());
  std::filesystem::remove(scratch / "metrics.jsonl");
  CHECK_THAT(IterationLog::lost_metrics(scratch.path(), "iteration"),
             ContainsSubstring("metrics.jsonl is missing"));
  CHECK_THAT(IterationLog::lost_metrics(scratch.path(), "step"),
             ContainsSubstring("all earlier steps"));
}

TEST_CASE("the first iteration of a run is known, however many jobs it takes") {
  const Scratch scratch;
  const auto add = [](IterationLog& log, std::int64_t iteration) {
    log.add(iteration, {{"training/global_step", static_cast<double>(iteration)}}, {}, {0});
  };
  {
    IterationLog log(scratch.path(), "config", {}, 4);  // from another run's checkpoint
    CHECK(log.first_iteration() == 5);
    log.add_final_evaluation(4, {{"val/score/mean", 0.5}});  // of what the run began with
    add(log, 5);
    add(log, 6);
    log.flush();
  }
  CHECK(IterationLog(scratch.path(), "config", {}, 6).first_iteration() == 5);
  CHECK(IterationLog(scratch.path(), "config", {}, 0).first_iteration() == 1);
}

TEST_CASE("GPUs that round differently from those before are told") {
  const Scratch scratch;
  const auto warning_on = [&](const std::string& capability, std::int64_t finished) {
    std::map<std::string, std::string> facts{{"ranks", "1"}};
    if (!capability.empty()) facts["gpu_capability"] = capability;
    const std::string log = logged_by([&] {
      IterationLog results(scratch.path(), "config", facts, finished);
      results.add(finished + 1, {{"training/global_step", 1.0}}, {}, {0});
      results.flush();
    });
    return log.find("warning") == std::string::npos ? "" : log;
  };
  CHECK(warning_on("9.0", 0).empty());
  CHECK(warning_on("9.0", 1).empty());
  CHECK_THAT(warning_on("8.0", 2),
             ContainsSubstring("on GPUs of compute capability 9.0 so far, and from here on it is "
                               "on GPUs of compute capability 8.0"));
  CHECK_THAT(warning_on("", 3), ContainsSubstring("8.0 so far, and from here on it is on CPUs"));
  CHECK(warning_on("", 4).empty());
  CHECK_THAT(warning_on("9.0", 5), ContainsSubstring("on CPUs so far"));
}
