// SPDX-License-Identifier: Apache-2.0
#include "simulate/FixedRules.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

// Two sequences of each rank outlast the others by far.
ReplayTrace tail(int longest) {
  ReplayTrace trace;
  trace.work.sequences = 64;
  trace.work.prompt_tokens = 64 * 100;
  trace.work.max_new_tokens = 2000;
  for (int i = 0; i < 64; ++i) trace.outcomes.push_back({i, 100, i < 4 ? longest : 60, false});
  return trace;
}

}  // namespace

TEST_CASE("the best rule climbs where only a tail is left, and none helps where there is none") {
  const DivisorChain chain = DivisorChain::of(2);
  const SimulatedMachine machine(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  const FixedRules rules({1, 2}, chain, machine, 64);
  for (const int longest : {2000, 60}) {
    const ReplayTrace trace = tail(longest);
    const std::int64_t stay = replay_ns(trace, Layout::uniform(1, chain), {}, machine),
                       wide = replay_ns(trace, Layout::uniform(2, chain), {}, machine);
    const auto times = rules.times(trace);
    const std::int64_t best = *std::min_element(times.begin(), times.end());
    if (longest > 60)
      CHECK(best < std::min(stay, wide) * 99 / 100);
    else
      CHECK(best >= std::min(stay, wide));
    CHECK(times.size() == rules.times(tail(70)).size());
  }
}

TEST_CASE("one degree on one rank leaves no rule") {
  const SimulatedMachine machine(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  CHECK(FixedRules({1}, DivisorChain::of(1), machine, 64).times(tail(60)).empty());
}
