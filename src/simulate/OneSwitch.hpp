// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for the planner of arXiv 2605.23945, whose rule and cost equations are not public: one
// switch at most, to stay or to switch now, a target inside a node, the published costs, all of the
// KV cache or nothing. It knows the same lengths and step times as Taper's planner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulate/Simulator.hpp"

namespace taper {

// Seconds of a switch as published: 5.52 of which the parts named are these, and the rest.
struct PublishedSwitch {
  double kv = 2.36;
  double weights = 1.03;
  double graphs = 0.73;
  double other = 1.40;
  double total() const { return kv + weights + graphs + other; }
};

// The profile with the published costs: moving any KV at all takes the time of all.
LatencyProfile with_published_costs(LatencyProfile profile, const PublishedSwitch& published);

struct OneSwitchResult {
  int first = 1;             // degree that it starts in
  std::int64_t time_ns = 0;  // of the generations that count
  int switches = 0;
};

// Plays the generations with it, the first `warm_up` of them only to learn from, once from each
// degree of a node, and gives the start that turned out best, as if it had been tuned. `planner`:
// seed and period of consultation.
OneSwitchResult play_one_switch(std::span<const ReplayTrace> traces, const SimulatedMachine& real,
                                const std::vector<int>& degrees, const DivisorChain& chain,
                                const PlannerOptions& planner, int warm_up,
                                const PublishedSwitch& published = {});

}  // namespace taper
