// SPDX-License-Identifier: Apache-2.0
#include "predict/PlanSearch.hpp"

#include <algorithm>

namespace taper {
namespace {

constexpr int kFewScenarios = 8;

std::size_t best_of(const std::vector<PricedPlan>& plans) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < plans.size(); ++i)
    if (plans[i].mean() < plans[best].mean()) best = i;
  return best;
}

}  // namespace

std::vector<SwitchRule> ladder(const PlanSetting& setting, const LayoutShape& from, int alive,
                               std::int64_t mean_context) {
  std::vector<SwitchRule> rules;
  if (!from.layout.is_uniform()) return rules;
  const LayoutShape* here = &from;
  for (const LayoutShape* next : setting.uniform) {
    if (next->layout.groups().front().tp <= here->layout.groups().front().tp) continue;
    const int at = crossing(*here, *next, mean_context, alive);
    if (at == 0) continue;
    while (!rules.empty() && rules.back().alive <= at) rules.pop_back();
    rules.push_back({at, next, false});
    here = next;
  }
  return rules;
}

std::vector<std::vector<SwitchRule>> ways_on(const PlanSetting& setting, const LayoutShape& from,
                                             int alive, std::int64_t mean_context) {
  std::vector<std::vector<SwitchRule>> climbs{{}};
  const auto rules = ladder(setting, from, alive, mean_context);
  if (!rules.empty())
    for (const int percent : {100, 60, 35}) {
      climbs.push_back(rules);
      for (SwitchRule& rule : climbs.back()) rule.alive = std::max(1, rule.alive * percent / 100);
    }
  std::vector<std::vector<int>> evenings{{}};
  if (setting.repack && from.layout.replicas() > 1)
    evenings.insert(evenings.end(), {{alive / 2}, {alive / 2, alive / 4}, {alive / 4, alive / 8}});
  std::vector<std::vector<SwitchRule>> ways;
  for (const auto& climb : climbs)
    for (const auto& evening : evenings) {
      std::vector<SwitchRule> way;
      const int top = climb.empty() ? 0 : climb.front().alive;
      for (const int at : evening)
        if (at > top) way.push_back({at, &from, true});
      if (way.empty() && !evening.empty()) continue;  // that of the climb alone
      way.insert(way.end(), climb.begin(), climb.end());
      ways.push_back(std::move(way));
    }
  return ways;
}

PlanSearch::PlanSearch(const PlanSetting& setting, const LayoutShape& here,
                       std::span<const SequenceState> sequences, int scenarios)
    : setting_(setting),
      here_(here),
      sequences_(sequences),
      scenarios_(scenarios),
      loads_(here.curves.size()),
      alive_(static_cast<int>(sequences.size())) {
  for (const SequenceState& s : sequences) {
    ReplicaLoad& load = loads_[s.replica];
    ++(s.context > 0 ? load.running : load.waiting);
    load.context += s.context;
    mean_context_ += s.context;
  }
  mean_context_ /= std::max(1, alive_);
}

std::vector<const LayoutShape*> PlanSearch::targets() const {
  std::vector<const LayoutShape*> list;
  for (const LayoutShape* to : setting_.uniform)
    if (to->layout != here_.layout && (!setting_.look_ahead || speeds_up(here_, loads_, *to)))
      list.push_back(to);
  return list;
}

PricedPlan PlanSearch::now(const Pricer& pricer, const LayoutShape& to, bool repack,
                           int count) const {
  PricedPlan plan(Plan{to.layout, PlanStart::kNow, 0, repack}, {{alive_, &to, repack}});
  pricer.price(plan, count);
  const auto rest = ladder(setting_, to, alive_ - 1, mean_context_);
  if (rest.empty() || !setting_.look_ahead) return plan;
  PricedPlan climb(plan.plan, plan.rules);
  climb.rules.insert(climb.rules.end(), rest.begin(), rest.end());
  pricer.price(climb, count);
  return climb.mean() < plan.mean() ? climb : plan;
}

void PlanSearch::add_later(const LayoutShape& to, bool repack,
                           std::vector<PricedPlan>& plans) const {
  const auto rest = ladder(setting_, to, alive_ - 1, mean_context_);
  int before = alive_;
  for (const int percent : {85, 70, 50, 30}) {
    const int at = std::min(alive_ * percent / 100, before - 1);
    if (at < 1) break;
    before = at;
    PricedPlan plan(Plan{to.layout, PlanStart::kBelow, at, repack}, {{at, &to, repack}});
    for (const SwitchRule& rule : rest)
      if (rule.alive < at) plan.rules.push_back(rule);
    plans.push_back(std::move(plan));
  }
}

std::vector<PricedPlan> PlanSearch::search() const {
  std::vector<PricedPlan> plans;
  plans.emplace_back(stay_in(here_.layout));
  auto to = targets();
  const bool repack = setting_.repack && is_uneven(here_.layout, loads_);
  if (to.empty() && !repack) return plans;
  const Pricer pricer(setting_.scenarios, scenarios_, sequences_, here_, setting_.cost,
                      setting_.lengths, setting_.slots_per_rank);
  if (setting_.look_ahead) {
    for (const LayoutShape* shape : to) add_later(*shape, false, plans);
    if (repack) add_later(here_, true, plans);
    const auto climb = ladder(setting_, here_, alive_ - 1, mean_context_);
    if (!climb.empty())
      plans.emplace_back(
          Plan{climb.front().shape->layout, PlanStart::kBelow, climb.front().alive, false}, climb);
    if (setting_.mixed_groups && !to.empty())
      if (const auto mixed = best_merge(pricer.first_runs(8), setting_.chain, setting_.steps,
                                        setting_.degrees, setting_.slots_per_rank))
        to.push_back(&setting_.shape(*mixed));
  }
  const int few = std::min(kFewScenarios, scenarios_);
  for (PricedPlan& plan : plans) pricer.price(plan, few);
  for (const LayoutShape* shape : to) plans.push_back(now(pricer, *shape, false, few));
  if (repack) plans.push_back(now(pricer, here_, true, few));
  // All scenarios for those that may turn out best: a switch now, where it leads or nearly does.
  std::sort(plans.begin() + 1, plans.end(),
            [](const PricedPlan& a, const PricedPlan& b) { return a.mean() < b.mean(); });
  const std::size_t best = best_of(plans);
  const auto is_now = [](const PricedPlan& p) {
    return !p.rules.empty() && p.plan.start == PlanStart::kNow;
  };
  const auto first_now = std::find_if(plans.begin() + 1, plans.end(), is_now);
  if (first_now->mean() - plans[best].mean() > plans[best].mean() / 64) return plans;
  std::vector<PricedPlan> finals{plans[0]};
  for (std::size_t i = 1; i < plans.size() && finals.size() < 4; ++i)
    if (i <= 2 || &plans[i] == &*first_now) finals.push_back(plans[i]);
  for (PricedPlan& plan : finals) pricer.price(plan, scenarios_);
  return finals;
}

std::vector<PricedPlan> PlanSearch::compare(const LayoutShape& to, bool repack) const {
  const Pricer pricer(setting_.scenarios, scenarios_, sequences_, here_, setting_.cost,
                      setting_.lengths, setting_.slots_per_rank);
  std::vector<PricedPlan> plans;
  plans.emplace_back(stay_in(here_.layout));
  pricer.price(plans.front(), scenarios_);
  plans.push_back(now(pricer, to, repack, scenarios_));
  return plans;
}

}  // namespace taper
