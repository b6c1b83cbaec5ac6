// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/Replay.hpp"
#include "simulate/Simulator.hpp"

namespace taper {

struct OracleResult {
  std::int64_t time_ns = 0;
  Layout first;
  std::vector<ReplaySwitch> switches;
};

// The fastest way through a generation whose lengths are known: any uniform layout of the degrees
// to start with and at most two switches, each to another one or a repack, at multiples of
// consult_ns (a multiple of it if there would be more than `grid` of them). An exhaustive
// search.
OracleResult best_plan(const ReplayTrace& trace, const std::vector<int>& degrees,
                       const DivisorChain& chain, const SimulatedMachine& machine,
                       std::int64_t consult_ns, int grid = 48);

// The grid, 1 to 32, with which the search stays short beside a generation: the more sequences and
// degrees there are, the coarser. 0.1 s on one core of an EPYC.
int quick_grid(int sequences, int degrees);

}  // namespace taper
