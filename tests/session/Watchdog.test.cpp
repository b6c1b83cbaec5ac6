// SPDX-License-Identifier: Apache-2.0
//
// What a watchdog must not do; what it does is tested by programs that must fail (Fault.cpp).
#include "session/Watchdog.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <thread>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using namespace taper;

namespace {

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

}  // namespace

TEST_CASE("bad options are refused") {
  Progress progress;
  CHECK_THROWS_AS(Watchdog(progress, {.hang_seconds = 0.0}), Error);
  CHECK_THROWS_AS(Watchdog(progress, {.hang_seconds = std::numeric_limits<double>::quiet_NaN()}),
                  Error);
  CHECK_THROWS_AS(Watchdog(progress, {.grace_seconds = -1.0}), Error);
  CHECK_THROWS_AS(Watchdog(progress, {.directory = ""}), Error);
  CHECK(WatchdogOptions{}.problems().empty());
}

TEST_CASE("long work outside of collectives is no hang") {
  Progress progress;
  const Watchdog watchdog(progress, {.hang_seconds = 0.1, .grace_seconds = 0.0});
  progress.enter_collective("barrier", 1, 2);
  progress.leave_collective();
  sleep_ms(400);
  CHECK_FALSE(progress.read().inside_collective);
}

TEST_CASE("many collectives that each end in time are no hang") {
  Progress progress;
  const Watchdog watchdog(progress, {.hang_seconds = 2.0, .grace_seconds = 0.0});
  for (int i = 0; i < 30; ++i) {
    progress.enter_collective("all_gather", static_cast<std::uint64_t>(i), 2);
    sleep_ms(100);
    progress.leave_collective();
  }
  CHECK(progress.read().number == 29);
}

TEST_CASE("a watchdog stops at once when it is destroyed") {
  Progress progress;
  const auto start = std::chrono::steady_clock::now();
  { const Watchdog watchdog(progress, {.hang_seconds = 1e6}); }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(4));
}

TEST_CASE("reports of earlier jobs go, and nothing else") {
  const taper::test::Scratch scratch;
  for (const char* name : {"hang-rank-0.txt", "hang-rank-12.txt", "hang-rank-.txt",
                           "hang-rank-1.txt.bak", "hang-rank-one.txt", "notes.txt"})
    taper::test::spill(scratch / name, "");
  remove_hang_reports(scratch.path().string());
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path()))
    left.insert(entry.path().filename().string());
  CHECK(left == std::set<std::string>{"hang-rank-.txt", "hang-rank-1.txt.bak", "hang-rank-one.txt",
                                      "notes.txt"});
  CHECK_NOTHROW(remove_hang_reports((scratch / "nowhere").string()));
}
