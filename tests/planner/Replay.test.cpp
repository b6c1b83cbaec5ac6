// SPDX-License-Identifier: Apache-2.0
#include "planner/Replay.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "tests/support/synthetic_profile.hpp"

namespace taper {
namespace {

const DivisorChain kChain = DivisorChain::of(2);

ReplayTrace trace(std::int32_t prompt) {
  ReplayTrace t;
  t.work.samples = 4;
  t.work.max_new_tokens = 1000;
  t.outcomes.assign(10, Outcome{});  // the last prompt has two
  for (Outcome& o : t.outcomes) o.prompt = prompt;
  for (std::size_t i = 0; i < t.outcomes.size(); ++i)
    t.outcomes[i].response = 100 + static_cast<std::int32_t>(i);
  return t;
}

TEST_CASE("a generation begins with the responses to a short prompt on all replicas") {
  const auto list = initial_sequences(10, 4, 10, 1000, Layout::uniform(1, kChain));
  std::vector<int> replicas, owners;
  for (const SequenceState& q : list) {
    CHECK(q.id == &q - list.data());
    CHECK(q.context == 0);
    replicas.push_back(q.replica);
    owners.push_back(static_cast<int>(q.owner));
  }
  CHECK(replicas == std::vector<int>{0, 0, 1, 1, 0, 0, 1, 1, 0, 1});
  CHECK(owners == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2});
}

TEST_CASE("a long prompt stays whole") {
  std::vector<int> replicas;
  for (const SequenceState& q : initial_sequences(10, 4, 100, 1000, Layout::uniform(1, kChain)))
    replicas.push_back(q.replica);
  CHECK(replicas == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 0, 0});
}

TEST_CASE("replay begins as generations do") {
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  const StepModel steps(profile);
  const SwitchCost cost(profile);
  const Layout layout = Layout::uniform(1, kChain);
  const LayoutShape shape = resolve(layout, steps);
  for (const std::int32_t prompt : {10, 100}) {
    const ReplayTrace t = trace(prompt);
    const PlayedGeneration run = start_replay(t, shape, cost);
    const auto expected = initial_sequences(10, 4, prompt, 1000, layout);
    const auto states = run.states();
    REQUIRE(states.size() == expected.size());
    for (std::size_t i = 0; i < states.size(); ++i) {
      CHECK(states[i].id == expected[i].id);
      CHECK(states[i].replica == expected[i].replica);
    }
  }
}

}  // namespace
}  // namespace taper
