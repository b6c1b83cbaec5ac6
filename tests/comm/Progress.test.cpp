// SPDX-License-Identifier: Apache-2.0
#include "comm/Progress.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <string>
#include <thread>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("progress shows what was set last") {
  Progress progress;
  CHECK_THAT(to_string(progress.read()), ContainsSubstring("no collective so far"));
  progress.set_phase("train");
  progress.set_iteration(4);
  progress.set_step(2);
  progress.enter_collective("barrier", 7, 3);
  auto view = progress.read();
  CHECK(view.inside_collective);
  CHECK(view.number == 7);
  CHECK_THAT(to_string(view), ContainsSubstring("phase train, iteration 4, step 2, in barrier "
                                                "number 7 of a group of 3"));
  progress.leave_collective();
  view = progress.read();
  CHECK_FALSE(view.inside_collective);
  CHECK(std::string(view.collective) == "barrier");
  CHECK_THAT(to_string(view), ContainsSubstring("after barrier"));
}

TEST_CASE("a phase within another one ends with its scope") {
  Progress progress;
  const auto phase = [&] { return std::string(progress.read().phase); };
  progress.set_phase("update");
  {
    const PhaseScope outer(progress, "save");
    CHECK(phase() == "save");
    {
      const PhaseScope inner(progress, "write");
      CHECK(phase() == "write");
    }
    CHECK(phase() == "save");
  }
  CHECK(phase() == "update");
}

TEST_CASE("the time since the last change starts again with every change") {
  Progress progress;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const double waited = progress.read().seconds_since_change;
  CHECK(waited >= 0.03);
  const auto before = std::chrono::steady_clock::now();
  progress.set_step(1);
  const double since = progress.read().seconds_since_change;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
  CHECK(since <= elapsed.count());
}

TEST_CASE("what is watched is asked until it is no longer watched") {
  Progress progress;
  CHECK(progress.watched_problem(1.0).empty());
  int abandoned = 0;
  progress.watch(
      &progress, [](double seconds) { return seconds > 5.0 ? "late" : ""; }, [&] { ++abandoned; });
  CHECK(progress.watched_problem(1.0).empty());
  CHECK(progress.watched_problem(6.0) == "late");
  progress.unwatch(&progress);
  CHECK(progress.watched_problem(6.0).empty());
  progress.watch(
      &progress, [](double) { return ""; }, [&] { ++abandoned; });
  progress.abandon_watched();
  CHECK(abandoned == 1);
}
