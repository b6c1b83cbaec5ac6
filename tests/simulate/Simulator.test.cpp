// SPDX-License-Identifier: Apache-2.0
//
// The figures that a planner is judged by, over seeds, length distributions and machines.
#include "simulate/Simulator.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

#include "simulate/LengthLaw.hpp"
#include "simulate/Oracle.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

constexpr int kSeeds = 5, kIterations = 5, kSequences = 128, kLimit = 1024;

// Sums over the iterations of one law on one machine.
struct Figures {
  std::int64_t oracle_gain = 0, gain = 0;  // where the oracle gains 2 % or more
  std::vector<double> slower;              // than the best static layout, per iteration
  int switches = 0, lost = 0;
};

ReplayTrace trace_of(LengthLaw law, int seed, int iteration) {
  ReplayTrace trace;
  trace.work.iteration = iteration;
  trace.work.sequences = kSequences;
  trace.work.prompt_tokens = 100 * kSequences;
  trace.work.max_new_tokens = kLimit;
  const auto lengths = draw_lengths(law, seed, iteration, kSequences, kLimit);
  for (int i = 0; i < kSequences; ++i) trace.outcomes.push_back({i, 100, lengths[i], false});
  return trace;
}

void add_run(Figures& figures, LengthLaw law, int seed, const SimulatedMachine& machine) {
  const DivisorChain chain = DivisorChain::of(2);
  PlannerOptions options;
  options.seed = static_cast<std::uint64_t>(seed);
  Planner planner(machine.profile, chain, options);
  std::vector<std::int64_t> ours, best(kIterations);
  std::vector<std::vector<std::int64_t>> fixed(2);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    const ReplayTrace trace = trace_of(law, seed, iteration);
    const SimulatedGeneration run = simulate(planner, options, trace, machine);
    ours.push_back(run.time_ns);
    for (int k = 0; k < 2; ++k)
      fixed[k].push_back(replay_ns(trace, Layout::uniform(k + 1, chain), {}, machine));
    best[iteration] = best_plan(trace, {1, 2}, chain, machine, options.consult_ns, 24).time_ns;
    figures.switches += static_cast<int>(run.switches.size());
    for (const SimulatedSwitch& s : run.switches) figures.lost += s.saved_ns < 0;
  }
  const auto total = [](const std::vector<std::int64_t>& v) {
    std::int64_t sum = 0;
    for (const auto x : v) sum += x;
    return sum;
  };
  const auto& reference = total(fixed[0]) < total(fixed[1]) ? fixed[0] : fixed[1];
  for (int i = 0; i < kIterations; ++i) {
    figures.slower.push_back(static_cast<double>(ours[i] - reference[i]) /
                             static_cast<double>(reference[i]));
    if ((reference[i] - best[i]) * 50 < reference[i]) continue;
    figures.oracle_gain += reference[i] - best[i];
    figures.gain += reference[i] - ours[i];
  }
}

Figures judge(LengthLaw law, const test::Machine& described) {
  const SimulatedMachine machine(test::synthetic_profile(described, {1, 2}));
  Figures figures;
  for (int seed = 1; seed <= kSeeds; ++seed) add_run(figures, law, seed, machine);
  std::sort(figures.slower.begin(), figures.slower.end());
  return figures;
}

void check_never_worse(const Figures& f) {
  double mean = 0;
  for (const double x : f.slower) mean += std::max(0.0, x) / static_cast<double>(f.slower.size());
  CHECK(mean <= 0.005);
  CHECK(f.slower[f.slower.size() * 95 / 100] <= 0.01);
}

}  // namespace

TEST_CASE("over a network the planner realises what the oracle could gain") {
  std::int64_t gain = 0, possible = 0;
  int switches = 0, lost = 0;
  for (const LengthLaw law : all_length_laws()) {
    CAPTURE(to_string(law));
    const Figures f = judge(law, test::small_model_tcp());
    check_never_worse(f);
    gain += f.gain;
    possible += f.oracle_gain;
    switches += f.switches;
    lost += f.lost;
    if (law == LengthLaw::kNarrow || law == LengthLaw::kTruncated) CHECK(f.switches == 0);
  }
  CAPTURE(gain, possible, switches, lost);
  CHECK(possible > 0);
  CHECK(static_cast<double>(gain) >= 0.94 * static_cast<double>(possible));
  CHECK(lost * 20 <= switches);
}

TEST_CASE("through shared memory the planner is never worse") {
  for (const LengthLaw law : all_length_laws()) {
    CAPTURE(to_string(law));
    check_never_worse(judge(law, test::small_model_shared()));
  }
}

TEST_CASE("the record of a switch tells what it saved") {
  const DivisorChain chain = DivisorChain::of(2);
  const SimulatedMachine machine(test::synthetic_profile(test::small_model_tcp(), {1, 2}));
  const PlannerOptions options;
  Planner planner(machine.profile, chain, options);
  const ReplayTrace trace = trace_of(LengthLaw::kHeavyTail, 3, 0);
  const SimulatedGeneration run = simulate(planner, options, trace, machine);
  REQUIRE(!run.switches.empty());
  std::vector<ReplaySwitch> made;
  std::int64_t cost = 0;
  for (const SimulatedSwitch& s : run.switches) {
    made.push_back(s.made);
    cost += s.cost_ns;
    CHECK(s.kv_bytes > 0);
  }
  CHECK(cost == run.switching_ns);
  // Strides end elsewhere, so their middles are rounded differently.
  const std::int64_t again = replay_ns(trace, run.first, made, machine);
  CHECK(std::abs(again - run.time_ns) < again / 5000);
  CHECK(run.switches.front().saved_ns == replay_ns(trace, run.first, {}, machine) - run.time_ns);
  CHECK(!run.forecasts.empty());
}
