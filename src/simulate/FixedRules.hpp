// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/Replay.hpp"
#include "simulate/Simulator.hpp"

namespace taper {

// Rules that could be set by hand before a run, to compare a planner with: start in one uniform
// layout, and change to a higher degree, or even out the replicas, or first the latter and then the
// former, as soon as only so many sequences are left. The best of them is known only afterwards.
class FixedRules {
 public:
  // For generations of at most so many sequences. Refers to the machine.
  FixedRules(const std::vector<int>& degrees, const DivisorChain& chain,
             const SimulatedMachine& machine, int sequences);
  FixedRules(const FixedRules&) = delete;  // a copy's rules would point into this one
  FixedRules& operator=(const FixedRules&) = delete;

  // The time of the generation by each rule; always in the same order.
  std::vector<std::int64_t> times(const ReplayTrace& trace) const;

 private:
  struct Rule {
    const LayoutShape* first;
    std::vector<SwitchRule> switches;
  };

  const SimulatedMachine& machine_;
  std::vector<LayoutShape> shapes_;  // by ascending degree
  std::vector<Rule> rules_;
};

}  // namespace taper
