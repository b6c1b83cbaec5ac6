// SPDX-License-Identifier: Apache-2.0
#include "planner/PlanSearch.hpp"

#include <algorithm>
#include <utility>

namespace taper {
namespace {

// All plans are first compared on this many futures; only those that may be best are priced on all.
constexpr std::size_t kFewScenarios = 8;
// What a replica costs beside its sequences in each future, in sequences: it is copied, started and
// ended however few it has, and at the end of a generation on many ranks most have one or none. It
// need not be exact: it only says how far one consultation gets.
constexpr std::int64_t kReplicaWork = 8;
// Futures beyond this work outgrow the first cache and cost half as much again, beyond this one the
// second, and several times as much.
constexpr std::int64_t kFirstCacheWork = 256, kCachedWork = 1024, kUncachedFactor = 4;

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
    // A degree that pays no later than the one before it makes that one superfluous.
    while (!rules.empty() && rules.back().alive <= at) rules.pop_back();
    rules.push_back({at, next, Repack::kNo});
    here = next;
  }
  return rules;
}

PlanSearch::PlanSearch(const PlanSetting& setting, const LayoutShape& here,
                       std::vector<SequenceState> sequences, int scenarios, StepPhase phase)
    : setting_(setting),
      here_(here),
      scenarios_(static_cast<std::size_t>(scenarios)),
      loads_(here.curves.size()),
      alive_(static_cast<int>(sequences.size())),
      pricer_(setting.scenarios, sequences, here, setting.cost, setting.lengths,
              setting.slots_per_rank, phase),
      plans_{PricedPlan(stay_in(here.layout))} {
  for (const SequenceState& s : sequences) {
    ReplicaLoad& load = loads_[s.replica];
    ++(s.context > 0 ? load.running : load.waiting);
    load.context += s.context;
    mean_context_ += s.context;
  }
  mean_context_ /= std::max(1, alive_);
}

std::vector<const LayoutShape*> PlanSearch::uniform_targets() const {
  std::vector<const LayoutShape*> list;
  // A layout that speeds up no group can wait (speeds_up); the myopic rule knows no waiting.
  for (const LayoutShape* to : setting_.uniform)
    if (to->layout != here_.layout && (!setting_.look_ahead || speeds_up(here_, loads_, *to)))
      list.push_back(to);
  return list;
}

void PlanSearch::add_now(const LayoutShape& to, Repack repack,
                         std::vector<PricedPlan>& plans) const {
  const Plan plan{to.layout, PlanStart::kNow, 0, repack};
  plans.emplace_back(plan, std::vector<SwitchRule>{{alive_, &to, repack}});
  const auto rest = ladder(setting_, to, alive_ - 1, mean_context_);
  if (rest.empty() || !setting_.look_ahead) return;
  // The same switch with later ones to higher degrees: its own plan, since these need not pay.
  plans.emplace_back(plan, plans.back().rules);
  plans.back().rules.insert(plans.back().rules.end(), rest.begin(), rest.end());
}

void PlanSearch::add_later(const LayoutShape& to, Repack repack,
                           std::vector<PricedPlan>& plans) const {
  const auto rest = ladder(setting_, to, alive_ - 1, mean_context_);
  int before = alive_;
  // A coarse grid: these plans tell whether waiting is better than a switch now. The plans are
  // searched again when the point is reached or a quarter of the sequences have ended (is_settled).
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

void PlanSearch::begin() {
  targets_ = uniform_targets();
  repack_ = setting_.repack && is_uneven(here_.layout, loads_);
  stage_ = targets_.empty() && !repack_ ? Stage::kDone : Stage::kList;
  if (stage_ == Stage::kDone || targets_.empty()) return;
  if (!setting_.look_ahead || !setting_.mixed_groups) return;
  merge_.emplace(here_.layout, setting_.chain, setting_.steps, setting_.degrees,
                 setting_.slots_per_rank);
  stage_ = Stage::kMerge;
}

// One scenario at each call, so that a search of unequal groups can be spread over consultations.
void PlanSearch::merge() {
  merge_->add(pricer_.played(merged_));
  if (++merged_ == std::min(kFewScenarios, scenarios_)) stage_ = Stage::kList;
}

void PlanSearch::list_plans() {
  if (setting_.look_ahead) {
    for (const LayoutShape* shape : targets_) add_later(*shape, Repack::kNo, plans_);
    if (repack_) add_later(here_, Repack::kYes, plans_);
    const auto climb = ladder(setting_, here_, alive_ - 1, mean_context_);
    if (!climb.empty())
      plans_.emplace_back(
          Plan{climb.front().shape->layout, PlanStart::kBelow, climb.front().alive, Repack::kNo},
          climb);
    if (merge_)
      if (const auto mixed = merge_->best()) targets_.push_back(&setting_.shape(*mixed));
  }
  for (const LayoutShape* shape : targets_) add_now(*shape, Repack::kNo, plans_);
  if (repack_) add_now(here_, Repack::kYes, plans_);
}

PlanSearch::Extended PlanSearch::extend_one(std::size_t scenarios) {
  const auto next = std::find_if(plans_.begin(), plans_.end(),
                                 [&](const PricedPlan& p) { return p.rest_ns.size() < scenarios; });
  if (next == plans_.end()) return Extended::kNone;
  if (pricer_.prepare(*next)) return Extended::kPrepared;
  pricer_.extend(*next);
  return Extended::kPriced;
}

void PlanSearch::keep_the_best() {
  std::stable_sort(plans_.begin() + 1, plans_.end(),
                   [](const PricedPlan& a, const PricedPlan& b) { return a.mean() < b.mean(); });
  // Of one plan, with and without what may follow it, the better one.
  std::vector<PricedPlan> kept{plans_.front()};
  for (std::size_t i = 1; i < plans_.size(); ++i)
    if (std::none_of(kept.begin() + 1, kept.end(),
                     [&](const PricedPlan& p) { return p.plan == plans_[i].plan; }))
      kept.push_back(plans_[i]);
  plans_ = std::move(kept);
  const std::int64_t best = plans_[best_of(plans_)].mean();
  const auto first_now = std::find_if(plans_.begin() + 1, plans_.end(), [](const PricedPlan& p) {
    return p.plan.start == PlanStart::kNow;
  });
  // A switch now is priced on all scenarios only if it leads on the few, or nearly does: the few
  // are noisy, so a plan within 1/64 (1.6 %) of the best may still turn out to be the best.
  // Otherwise nothing is to be done now, and the search is over.
  if (first_now->mean() - best > best / 64) {
    stage_ = Stage::kFinish;
    return;
  }
  // Kept: staying, against which savings are measured, the two best plans, and the best switch now.
  const auto index = static_cast<std::size_t>(first_now - plans_.begin());
  std::vector<PricedPlan> finals;
  for (std::size_t i = 0; i < plans_.size(); ++i)
    if (i <= 2 || i == index) finals.push_back(std::move(plans_[i]));
  plans_ = std::move(finals);
  stage_ = Stage::kAll;
}

bool PlanSearch::step() {
  Extended extended = Extended::kNone;
  switch (stage_) {
    case Stage::kTargets:
      begin();
      break;
    case Stage::kMerge:
      merge();
      break;
    case Stage::kList:
      list_plans();
      stage_ = Stage::kFew;
      break;
    case Stage::kFew:
      extended = extend_one(std::min(kFewScenarios, scenarios_));
      if (extended == Extended::kNone) keep_the_best();
      break;
    case Stage::kAll:
      extended = extend_one(scenarios_);
      if (extended == Extended::kNone) stage_ = Stage::kFinish;
      break;
    case Stage::kFinish:
      pricer_.finish(plans_[finished_]);
      if (++finished_ == plans_.size()) stage_ = Stage::kDone;
      break;
    case Stage::kDone:
      break;
  }
  return extended != Extended::kPrepared;
}

bool PlanSearch::advance(std::int64_t work) {
  std::int64_t step_work = alive_ + kReplicaWork * static_cast<std::int64_t>(loads_.size());
  if (step_work > kCachedWork)
    step_work *= kUncachedFactor;
  else if (step_work > kFirstCacheWork)
    step_work += step_work / 2;
  // A step of the merge runs every sequence in a group of each degree.
  const auto degrees = static_cast<std::int64_t>(setting_.degrees.size());
  do {
    const std::int64_t whole = stage_ == Stage::kMerge ? degrees * step_work : step_work;
    work -= step() ? whole : whole / 2;
  } while (stage_ != Stage::kDone && work >= step_work);
  return stage_ == Stage::kDone;
}

std::vector<PricedPlan> PlanSearch::compare(const LayoutShape& to, Repack repack) {
  std::vector<PricedPlan> plans{PricedPlan(stay_in(here_.layout))};
  add_now(to, repack, plans);
  for (PricedPlan& plan : plans) pricer_.price(plan, static_cast<int>(scenarios_));
  // With and without later switches, whichever is better.
  if (plans.size() > 2 && plans[2].mean() < plans[1].mean()) std::swap(plans[1], plans[2]);
  plans.erase(plans.begin() + 2, plans.end());
  return plans;
}

}  // namespace taper
