// SPDX-License-Identifier: Apache-2.0
#include "run/PhaseTimer.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <thread>

using namespace taper;

namespace {

void pause_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

}  // namespace

TEST_CASE(
    "phases are timed in the order of their first start, and one that comes again counts on") {
  Progress progress;
  PhaseTimer timer(progress);
  timer.start("gen");
  CHECK(std::strcmp(progress.read().phase, "gen") == 0);
  pause_ms(5);
  timer.start("reward");
  timer.start("gen");
  pause_ms(5);
  timer.stop();
  timer.stop();  // nothing is on
  REQUIRE(timer.seconds().size() == 2);
  CHECK(timer.seconds()[0].first == "gen");
  CHECK(timer.seconds()[0].second >= 0.010);
  CHECK(timer.seconds()[1].first == "reward");
  CHECK(timer.total() == timer.seconds()[0].second + timer.seconds()[1].second);
}

TEST_CASE("times over ranks are between the fastest and the slowest, the same on all") {
  const Group world = Group::world(MPI_COMM_WORLD);
  Progress progress;
  PhaseTimer timer(progress);
  timer.start("gen");
  pause_ms(2 + 10 * world.rank());
  timer.stop();
  const auto timing = reduce_timing(world, timer);
  REQUIRE(timing.size() == 1);
  const PhaseTiming& t = timing.front();
  CHECK(t.phase == "gen");
  CHECK(t.min <= timer.total());
  CHECK(t.max >= timer.total());
  CHECK(t.min >= 0.002);
  CHECK(t.max >= 0.002 + 0.010 * (world.size() - 1));
  CHECK(t.mean >= t.min);
  CHECK(t.mean <= t.max);
}

TEST_CASE("a phase that is elsewhere has a time of its own") {
  Progress progress;
  PhaseTimer timer(progress);
  timer.start("gen");
  timer.expect("ref");
  timer.expect("gen");
  timer.stop();
  REQUIRE(timer.seconds().size() == 2);
  CHECK(timer.seconds()[0].first == "gen");
  CHECK(timer.seconds()[0].second > 0.0);
  CHECK(timer.seconds()[1] == std::pair<std::string, double>{"ref", 0.0});
}
