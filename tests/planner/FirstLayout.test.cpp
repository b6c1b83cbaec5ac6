// SPDX-License-Identifier: Apache-2.0
#include "planner/FirstLayout.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "planner/Replay.hpp"
#include "planner/Tail.hpp"

using namespace taper;
using namespace taper::test;

namespace {

struct Starting : Tail {
  static FirstSequences first(int count) { return {count, 1, 50, 1024}; }

  std::size_t choose(int count, bool can_switch) {
    PlanSetting setting{
        uniform,   chain,
        degrees,   steps,
        cost,      lengths,
        scenarios, [this](const Layout& layout) -> const LayoutShape& { return shape(layout); }};
    setting.look_ahead = can_switch;
    return choose_first_layout(setting, first(count), 48);
  }

  // To the last sequence in one of the uniform layouts, with the switches, on 48 futures.
  std::int64_t time_in(std::size_t index, int count, const std::vector<SwitchRule>& rules = {}) {
    const LayoutShape& shape = *uniform[index];
    Pricer pricer(scenarios, initial_sequences(count, 1, 50, 1024, shape.layout), shape, cost,
                  lengths, 64, StepPhase::kBegin);
    PricedPlan plan(stay_in(shape.layout), rules);
    pricer.price(plan, 48);
    return plan.mean();
  }
};

}  // namespace

TEST_CASE_METHOD(Starting, "a generation that never switches starts where it ends first") {
  std::vector<std::size_t> chosen;
  for (const int count : {1, 4, 8, 16, 32, 64, 128, 256}) {
    INFO(count << " sequences");
    std::int64_t least = time_in(0, count);
    for (std::size_t i = 1; i < uniform.size(); ++i) least = std::min(least, time_in(i, count));
    chosen.push_back(choose(count, false));
    CHECK(time_in(chosen.back(), count) - least <= least / 64);
  }
  CHECK(chosen.front() == uniform.size() - 1);  // one sequence has all ranks
  CHECK(chosen.back() == 0);
}

TEST_CASE_METHOD(Starting, "what follows can make another layout the better one to start in") {
  bool differs = false;
  for (const int count : {8, 16, 32, 64, 128}) {
    const std::size_t alone = choose(count, false), followed = choose(count, true);
    if (alone == followed) continue;
    differs = true;
    // It begins with more replicas, and goes on to fewer.
    CHECK(followed < alone);
    const std::vector<SwitchRule> climb{{std::max(1, count / 4), uniform[alone], Repack::kNo}};
    CHECK(time_in(followed, count, climb) < time_in(alone, count));
  }
  CHECK(differs);
}
