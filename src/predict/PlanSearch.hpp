// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "predict/Candidates.hpp"
#include "predict/Pricer.hpp"

namespace taper {

// What plans are made of. Refers to its members' owners.
struct PlanSetting {
  std::span<const LayoutShape* const> uniform;  // by ascending degree
  const DivisorChain& chain;
  const std::vector<int>& degrees;
  const StepModel& steps;
  const SwitchCost& cost;
  const LengthModel& lengths;
  Scenarios& scenarios;
  std::function<const LayoutShape&(const Layout&)> shape;  // stable addresses
  int slots_per_rank = 64;
  bool look_ahead = true;
  bool mixed_groups = true;
  bool repack = true;
};

// The switches to higher degrees that pay by step time alone as sequences leave, from a uniform
// layout on.
std::vector<SwitchRule> ladder(const PlanSetting& setting, const LayoutShape& from, int alive,
                               std::int64_t mean_context);

// Ways on from a uniform layout that are worth pricing, as rules for a run: to stay, to even out
// replicas once or twice as sequences leave, to climb the ladder somewhat earlier or later, and
// both.
std::vector<std::vector<SwitchRule>> ways_on(const PlanSetting& setting, const LayoutShape& from,
                                             int alive, std::int64_t mean_context);

// Finds the best way on for given sequences in a layout.
class PlanSearch {
 public:
  // Refers to all arguments.
  PlanSearch(const PlanSetting& setting, const LayoutShape& here,
             std::span<const SequenceState> sequences, int scenarios);

  // Prices "stay" (plans[0]), switches now and switches later, on few scenarios first, and again on
  // all where a switch now is the best. Nothing but "stay", without a price, where no switch can
  // pay now.
  std::vector<PricedPlan> search() const;

  // Prices "stay" and one switch now, with what may follow it.
  std::vector<PricedPlan> compare(const LayoutShape& to, bool repack) const;

 private:
  std::vector<const LayoutShape*> targets() const;
  PricedPlan now(const Pricer& pricer, const LayoutShape& to, bool repack, int count) const;
  void add_later(const LayoutShape& to, bool repack, std::vector<PricedPlan>& plans) const;

  const PlanSetting& setting_;
  const LayoutShape& here_;
  std::span<const SequenceState> sequences_;
  int scenarios_;
  std::vector<ReplicaLoad> loads_;
  int alive_;
  std::int64_t mean_context_ = 0;
};

}  // namespace taper
