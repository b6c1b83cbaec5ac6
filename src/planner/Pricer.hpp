// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/Plan.hpp"
#include "planner/Scenarios.hpp"

namespace taper {

// A plan with the switches that it is expected to lead to.
struct PricedPlan {
  explicit PricedPlan(Plan what, std::vector<SwitchRule> switches = {})
      : plan(std::move(what)), rules(std::move(switches)) {}

  Plan plan;
  std::vector<SwitchRule> rules;
  std::vector<std::int64_t> rest_ns;  // by scenario: time to the last sequence
  std::int64_t cost_ns = 0;           // of a switch that happens now
  // Mean time to its first switch; without any, until a tenth of the sequences have ended.
  std::int64_t next_ns = 0;

  std::int64_t mean() const;
};

// Prices plans for the same sequences on the same scenarios, one future at a time.
class Pricer {
 public:
  // Refers to all arguments but the sequences.
  Pricer(Scenarios& scenarios, std::vector<SequenceState> sequences, const LayoutShape& shape,
         const SwitchCost& cost, const LengthModel& lengths, int slots_per_rank, StepPhase phase);

  // Does one part of what extend() needs for the plan's next scenario; false if all is done. For
  // those who may stop in between.
  bool prepare(const PricedPlan& plan);
  // Prices the plan on its next scenario.
  void extend(PricedPlan& plan);
  // Prices it up to so many scenarios and finishes it.
  void price(PricedPlan& plan, int count);
  // Fills next_ns, and cost_ns if the first rule applies now, of a plan with a price.
  void finish(PricedPlan& plan) const;

  // A scenario, at the start.
  const PlayedGeneration& played(std::size_t scenario);

 private:
  bool play_one(std::size_t scenario);

  Scenarios& scenarios_;
  std::vector<SequenceState> sequences_;
  const LayoutShape& shape_;
  const SwitchCost& cost_;
  const LengthModel& lengths_;
  int slots_per_rank_;
  StepPhase phase_;
  std::vector<PlayedGeneration> played_;         // by scenario, at the start
  std::vector<std::vector<std::int64_t>> ends_;  // of their sequences without a switch, ascending
};

PriceRange range_of(std::vector<std::int64_t> values);
// Whether the savings, by scenario, are positive, and add up to at least so many times the losses.
bool is_worth_risk(const std::vector<std::int64_t>& savings, int least_gain);
// a - b by scenario.
std::vector<std::int64_t> difference(const std::vector<std::int64_t>& a,
                                     const std::vector<std::int64_t>& b);

}  // namespace taper
