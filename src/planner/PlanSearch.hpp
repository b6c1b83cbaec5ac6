// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planner/Candidates.hpp"
#include "planner/MergeSearch.hpp"
#include "planner/Pricer.hpp"

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

// Finds the best way on for given sequences in a layout. A search can be spread over several
// calls, so that its cost at a time does not grow with the number of ranks.
class PlanSearch {
 public:
  // Refers to what the setting refers to, and to the shape.
  PlanSearch(const PlanSetting& setting, const LayoutShape& here,
             std::vector<SequenceState> sequences, int scenarios, StepPhase phase);

  // Goes on for at most so much work, but one step at least: sequences of simulated futures, and
  // replicas, which cost as much as a handful of them. True if the search is done.
  bool advance(std::int64_t work);

  // Of a search that is done: "stay" first, then the plans that came near the best one, priced on
  // all scenarios if a switch now is among them. Nothing but "stay", without a price, if no
  // switch can pay now.
  const std::vector<PricedPlan>& plans() const { return plans_; }

  // "Stay" and one switch now, with what may follow it, on all scenarios.
  std::vector<PricedPlan> compare(const LayoutShape& to, Repack repack);

 private:
  enum class Stage { kTargets, kMerge, kList, kFew, kAll, kFinish, kDone };

  std::vector<const LayoutShape*> uniform_targets() const;
  void begin();
  // The next scenario of the search for unequal groups.
  void merge();
  void list_plans();
  void add_now(const LayoutShape& to, Repack repack, std::vector<PricedPlan>& plans) const;
  void add_later(const LayoutShape& to, Repack repack, std::vector<PricedPlan>& plans) const;
  enum class Extended { kNone, kPrepared, kPriced };
  // Prices one plan that lacks some of so many scenarios on its next one, or prepares that.
  Extended extend_one(std::size_t scenarios);
  // After a few scenarios, those that may turn out best.
  void keep_the_best();
  // False if it only prepared a future, which is about half the work of pricing a plan on it.
  bool step();

  PlanSetting setting_;
  const LayoutShape& here_;
  std::size_t scenarios_;
  std::vector<ReplicaLoad> loads_;
  int alive_;
  std::int64_t mean_context_ = 0;
  Pricer pricer_;
  Stage stage_ = Stage::kTargets;
  std::vector<const LayoutShape*> targets_;
  bool repack_ = false;  // whether it evens out the layout as it is
  std::optional<MergeSearch> merge_;
  std::size_t merged_ = 0;    // scenarios of it
  std::size_t finished_ = 0;  // plans, at the end of the search
  std::vector<PricedPlan> plans_;
};

}  // namespace taper
