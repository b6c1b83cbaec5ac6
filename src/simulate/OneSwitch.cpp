// SPDX-License-Identifier: Apache-2.0
#include "simulate/OneSwitch.hpp"

#include <cmath>

namespace taper {
namespace {

constexpr double kSecond = 1e9;
constexpr std::int64_t kNoBudget = 1'000'000'000;

PlannerOptions one_switch(PlannerOptions planner, const std::vector<int>& degrees, int first,
                          const DivisorChain& chain) {
  planner.degrees = degrees;
  planner.initial = to_string(Layout::uniform(first, chain));
  planner.mixed_groups = planner.repack = planner.look_ahead = false;
  planner.max_switches = 1;
  planner.least_gain = 1;  // what is expected counts
  planner.budget_ppm = planner.fallback_ppm = kNoBudget;
  return planner;
}

}  // namespace

LatencyProfile with_published_costs(LatencyProfile profile, const PublishedSwitch& published) {
  profile.weights_ns = std::llround(published.weights * kSecond);
  profile.graphs_ns = std::llround(published.graphs * kSecond);
  profile.groups_ns = std::llround(published.other * kSecond);
  for (MoveCost& move : profile.moves) move = {move.pair, std::llround(published.kv * kSecond), 0};
  for (RendezvousCost& r : profile.rendezvous) r.ns = 0;  // in the rest
  return profile;
}

OneSwitchResult play_one_switch(std::span<const ReplayTrace> traces, const SimulatedMachine& real,
                                const std::vector<int>& degrees, const DivisorChain& chain,
                                const PlannerOptions& planner, int warm_up,
                                const PublishedSwitch& published) {
  SimulatedMachine machine(with_published_costs(real.profile, published));
  machine.steps.set_drafts(real.steps.drafts());
  std::vector<int> inside;
  for (const int tp : degrees)
    if (tp <= machine.profile.ranks_per_node) inside.push_back(tp);
  OneSwitchResult best;
  for (const int first : inside) {
    const PlannerOptions options = one_switch(planner, inside, first, chain);
    Planner rule(machine.profile, chain, options);
    OneSwitchResult result{first, 0, 0};
    int played = 0;
    for (const ReplayTrace& trace : traces) {
      const SimulatedGeneration g = simulate(rule, options, trace, machine);
      if (played++ < warm_up) continue;
      result.time_ns += g.time_ns;
      result.switches += static_cast<int>(g.switches.size());
    }
    if (first == inside.front() || result.time_ns < best.time_ns) best = result;
  }
  return best;
}

}  // namespace taper
