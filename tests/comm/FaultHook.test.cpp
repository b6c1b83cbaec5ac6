// SPDX-License-Identifier: Apache-2.0
#include "comm/FaultHook.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "comm/Progress.hpp"

using namespace taper;

TEST_CASE("a fault is due at its rank, phase, iteration and step") {
  CHECK(!FaultHook::parse(""));
  const int rank = log_rank();
  const auto at = [&](const std::string& rest) {
    return *FaultHook::parse("gen:" + std::to_string(rank) + rest);
  };
  CHECK(at(":kill").is_due("gen", 7, {}));
  CHECK(!at(":kill").is_due("gen", 7, 3));
  CHECK(!at(":kill").is_due("reward", 7, {}));
  CHECK(at(":throw:2").is_due("gen", 2, {}));
  CHECK(!at(":throw:2").is_due("gen", 3, {}));
  CHECK(at(":freeze:2:30").is_due("gen", 2, 30));
  CHECK(!at(":freeze:2:30").is_due("gen", 2, 31));
  CHECK(!at(":freeze:2:30").is_due("gen", 2, {}));
  CHECK(!FaultHook::parse("gen:" + std::to_string(rank + 1) + ":kill")->is_due("gen", 7, {}));
  for (const char* wrong : {"gen", "gen:0", "gen:x:kill", "gen:0:trip", "gen:0:kill:-1",
                            "gen:0:kill:1:2:3", "gen:0:kill:", "gen:0:slow", "gen:0:slow-2"})
    CHECK_THROWS_AS(FaultHook::parse(wrong), Error);
}

TEST_CASE("progress strikes where the fault is due") {
  const std::string here = ":" + std::to_string(log_rank()) + ":throw:2";
  {
    Progress progress(FaultHook::parse("update" + here));
    progress.set_iteration(1);
    CHECK_NOTHROW(progress.set_phase("update"));
    progress.set_iteration(2);
    CHECK_NOTHROW(progress.set_phase("gen"));
    CHECK_THROWS_AS(progress.set_phase("update"), Error);
  }
  {
    Progress progress(FaultHook::parse("update" + here));
    progress.set_iteration(1);
    progress.set_phase("update");
    {
      const PhaseScope scope(progress, "publish");
      progress.set_iteration(2);
    }  // the phase goes on, which is no place to strike
    CHECK(std::string(progress.read().phase) == "update");
    CHECK_THROWS_AS(PhaseScope(progress, "update"), Error);
  }
  Progress progress(FaultHook::parse("gen" + here + ":5"));
  progress.set_iteration(2);
  CHECK_NOTHROW(progress.set_phase("gen"));
  CHECK_NOTHROW(progress.set_step(4));
  CHECK_THROWS_AS(progress.set_step(5), Error);
}

TEST_CASE("a slow rank takes longer between collectives of its phase") {
  const auto seconds_at_work = [](const std::string& fault, std::int64_t iteration) {
    Progress progress(FaultHook::parse(fault));
    progress.set_iteration(iteration);
    progress.set_phase("update");
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    progress.enter_collective("barrier", 1, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    progress.leave_collective();
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
    CHECK(progress.seconds_in_collectives() >= 0.02);
    return all.count() - progress.seconds_in_collectives();
  };
  const std::string here = "update:" + std::to_string(log_rank());
  CHECK(seconds_at_work(here + ":slow4:2", 2) >= 0.08);
  CHECK(seconds_at_work(here + ":slow4:2", 3) >= 0.08);
  CHECK(seconds_at_work(here + ":slow40:2", 1) < seconds_at_work(here + ":slow40:2", 2) / 2);
}
