// SPDX-License-Identifier: Apache-2.0
#include "pricing/CallPrices.hpp"

#include <catch2/catch_test_macros.hpp>

#include "pricing/PlanRuns.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Responses that are as long as one another, or not.
ReplayTrace samples_of(const std::vector<int>& responses) {
  ReplayTrace trace;
  trace.work.sequences = static_cast<int>(responses.size());
  trace.work.samples = 2;
  trace.work.max_new_tokens = 512;
  for (const int response : responses) {
    trace.outcomes.push_back({std::ssize(trace.outcomes), 20, response, false});
    trace.work.prompt_tokens += 20;
  }
  return trace;
}

CallSetting setting() {
  CallSetting s;
  s.pass.bundle_tokens = 64;
  s.pass.shares_prefixes = true;
  return s;
}

}  // namespace

TEST_CASE("two replicas take half the time where samples can be halved") {
  const CallPrices prices(profile_by_rows({1, 2}), {samples_of(std::vector<int>(16, 40))},
                          setting());
  CHECK(prices.tokens() == 16 * 60);
  for (const UpdateSteps steps : {UpdateSteps{1, 1}, UpdateSteps{2, 1}, UpdateSteps{2, 3}}) {
    const auto learning = [&](int replicas) {
      const ModelLayout layout{0, {1, replicas}};
      const std::int64_t step = prices.update_ns(layout, steps, CallPrices::LearnsFrom::kValues);
      return step -
             std::int64_t{steps.mini_batches} * steps.epochs * (500'000 + 500'000 / replicas);
    };
    CHECK(learning(1) == 2 * learning(2));
    CHECK(learning(1) == 4 * learning(4));
  }
  CHECK(prices.reward_ns({0, {1, 1}}) == 2 * prices.reward_ns({0, {1, 2}}));
  // Replicas that share the samples of a prompt compute it each.
  const std::int64_t one = prices.reference_ns({0, {1, 1}}, {2, 1}),
                     two = prices.reference_ns({2, {1, 2}}, {2, 1});
  CHECK(two < one);
  CHECK(2 * two >= one);
}

TEST_CASE("the replica that takes longest counts") {
  const CallPrices prices(profile_by_rows({1, 2}), {samples_of({300, 1, 1, 1})}, setting());
  CHECK(prices.reward_ns({0, {1, 4}}) == 320'000);
  CHECK(prices.reward_ns({0, {1, 1}}) == 383'000);
}

TEST_CASE("generations are played in the layout of the grid, or by the planner from there") {
  const std::vector<ReplayTrace> traces(3, samples_of({300, 5, 5, 5, 5, 5, 5, 5}));
  LatencyProfile profile = profile_by_rows({1, 2});
  for (StepSample& s : profile.steps)
    if (s.tp == 2) s.time_ns = s.time_ns * (s.sequences == 1 ? 5 : 20) / 10;
  const DivisorChain two({1, 2});
  CallSetting fixed = setting(), moving = setting();
  moving.may_change_layout = true;
  const CallPrices before(profile, traces, fixed), after(profile, traces, moving);
  const std::int64_t one = before.generation_ns({1, 2}, two),
                     both = before.generation_ns({2, 1}, two);
  CHECK(after.generation_ns({1, 2}, two) < one);
  CHECK(after.generation_ns({2, 1}, two) == both);  // there is no other layout
  // On one of the ranks.
  CHECK(before.generation_ns({1, 1}, two) >= one);
}
