// SPDX-License-Identifier: Apache-2.0
//
// The planner in a simulated generation: the same consultations and the same answers as in a live
// one, with step times of a model instead of a machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/Planner.hpp"
#include "planner/Replay.hpp"

namespace taper {

// A switch that the planner made.
struct SimulatedSwitch {
  ReplaySwitch made;
  std::int64_t consultation = 0;
  int alive = 0;
  PriceRange predicted;  // saving
  std::int64_t cost_ns = 0;
  std::int64_t kv_bytes = 0;
  std::int64_t saved_ns = 0;  // against never switching again, under the true lengths
};

// A forecast of the time to the last sequence, made at a consultation.
struct RestForecast {
  std::int64_t at_ns = 0;
  std::size_t switches = 0;  // that were made before
  PriceRange rest;           // low and high: quantiles 10 and 90 %
};

struct SimulatedGeneration {
  Layout first;
  std::int64_t time_ns = 0;
  std::int64_t switching_ns = 0;
  int consultations = 0;
  std::vector<SimulatedSwitch> switches;
  std::vector<RestForecast> forecasts;  // of staying in the present layout
};

// What machine a simulation runs on.
struct SimulatedMachine {
  explicit SimulatedMachine(const LatencyProfile& p) : profile(p), steps(profile), cost(profile) {}
  SimulatedMachine(const SimulatedMachine&) = delete;

  LatencyProfile profile;
  StepModel steps;
  SwitchCost cost;
};

// Runs one generation and lets the planner learn from it.
SimulatedGeneration simulate(Planner& planner, const PlannerOptions& options,
                             const ReplayTrace& trace, const SimulatedMachine& machine);

// The time of the generation from its first layout with the given switches.
std::int64_t replay_ns(const ReplayTrace& trace, const Layout& first,
                       const std::vector<ReplaySwitch>& switches, const SimulatedMachine& machine);

// What each of the switches saved, in nanoseconds, in a generation that took `time_ns` with all of
// them: compared with making neither it nor any later one.
std::vector<std::int64_t> savings(const ReplayTrace& trace, const Layout& first,
                                  const std::vector<ReplaySwitch>& switches, std::int64_t time_ns,
                                  const SimulatedMachine& machine);

}  // namespace taper
