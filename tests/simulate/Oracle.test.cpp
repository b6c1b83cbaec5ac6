// SPDX-License-Identifier: Apache-2.0
#include "simulate/Oracle.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

#include "simulate/LengthLaw.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

ReplayTrace trace_of(const std::vector<int>& lengths, int limit) {
  ReplayTrace trace;
  trace.work.sequences = static_cast<int>(lengths.size());
  trace.work.prompt_tokens = 50 * trace.work.sequences;
  trace.work.max_new_tokens = limit;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    trace.outcomes.push_back({static_cast<std::int64_t>(i), 50, lengths[i], false});
  return trace;
}

}  // namespace

TEST_CASE("the oracle beats every static layout and every single switch of its grid") {
  const DivisorChain chain = DivisorChain::of(2);
  const SimulatedMachine machine(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  const auto trace = trace_of(draw_lengths(LengthLaw::kHeavyTail, 4, 0, 64, 1024), 1024);
  const std::int64_t consult = 100'000'000;
  const OracleResult best = best_plan(trace, {1, 2}, chain, machine, consult, 64);
  const Layout tp1 = Layout::uniform(1, chain), tp2 = Layout::uniform(2, chain);
  // Strides end elsewhere on the grid, so their middles are rounded differently.
  const std::int64_t again = replay_ns(trace, best.first, best.switches, machine);
  CHECK(std::abs(best.time_ns - again) < again / 5000);
  for (const Layout& first : {tp1, tp2}) {
    CHECK(best.time_ns <= replay_ns(trace, first, {}, machine));
    for (int k = 1; k < 30; ++k)
      for (const Layout& then : {tp1, tp2})
        CHECK(best.time_ns <=
              replay_ns(trace, first,
                        {{k * consult, then, then == first ? Repack::kYes : Repack::kNo}},
                        machine));
  }
  CHECK(!best.switches.empty());
  CHECK(best.time_ns < replay_ns(trace, tp1, {}, machine) * 98 / 100);
}

TEST_CASE("without a tail the oracle has nothing to gain") {
  const DivisorChain chain = DivisorChain::of(2);
  const SimulatedMachine machine(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  const auto trace = trace_of(std::vector<int>(64, 300), 300);
  const OracleResult best = best_plan(trace, {1, 2}, chain, machine, 50'000'000);
  CHECK(best.switches.empty());
}

TEST_CASE("the search of a live run looks at fewer moments where there is more to play") {
  CHECK(quick_grid(128, 2) == 32);
  CHECK(quick_grid(1024, 4) == 16);
  CHECK(quick_grid(8192, 4) == 5);
  CHECK(quick_grid(1'000'000, 10) == 1);
  CHECK(quick_grid(0, 1) == 32);
}
