// SPDX-License-Identifier: Apache-2.0
#include "planner/FirstLayout.hpp"

#include <algorithm>
#include <list>
#include <vector>

#include "planner/Replay.hpp"

namespace taper {
namespace {

using Way = std::vector<SwitchRule>;

// Sequences x futures that what is kept is priced on.
constexpr int kMostDraws = 2048;
// Each way on from a layout is priced on a few futures, only the best ones on all: short
// generations have no time for more.
constexpr int kFewFutures = 4;
constexpr std::size_t kWaysKept = 2;
// Layouts that are slower than the best one by more than this share (1/n) on the few are out. All
// have the same futures, so that differences are less uncertain than times.
constexpr std::int64_t kCloseShare = 32;

// A layout to start in. The plan that is best so far is the first.
struct Start {
  std::size_t index;
  Pricer pricer;
  std::vector<PricedPlan> plans;

  std::int64_t mean() const { return plans.front().mean(); }
  void price(const LayoutShape& shape, const Way& way) {
    pricer.price(plans.emplace_back(stay_in(shape.layout), way), kFewFutures);
  }
  void sort() {
    std::stable_sort(plans.begin(), plans.end(),
                     [](const PricedPlan& a, const PricedPlan& b) { return a.mean() < b.mean(); });
  }
};

// Ways up the ladder, and to stay. The ladder compares step times alone. A switch also costs time,
// so climbing later, with fewer sequences left, may be better; how much later is tried in about
// equal ratios.
std::vector<Way> climbs(const PlanSetting& setting, const LayoutShape& from,
                        const FirstSequences& all) {
  std::vector<Way> ways{{}};
  const Way rules = ladder(setting, from, all.count, all.mean_prompt + all.max_new_tokens / 4);
  if (rules.empty()) return ways;
  for (const int percent : {100, 60, 35}) {
    ways.push_back(rules);
    for (SwitchRule& rule : ways.back()) rule.alive = std::max(1, rule.alive * percent / 100);
  }
  return ways;
}

// The same climb after evening out replicas. That pays once they have lost unequally many
// sequences: when half of them have ended, then again after another half; or both one half later.
std::vector<Way> evenings(const PlanSetting& setting, const LayoutShape& from, int count,
                          const Way& climb) {
  std::vector<Way> ways;
  if (!setting.repack || from.layout.replicas() < 2) return ways;
  const int top = climb.empty() ? 0 : climb.front().alive;
  for (const std::vector<int>& evening :
       {std::vector{count / 2}, {count / 2, count / 4}, {count / 4, count / 8}}) {
    if (evening.back() <= top) continue;  // the climb comes before
    Way& way = ways.emplace_back();
    for (const int at : evening) way.push_back({at, &from, Repack::kYes});
    way.insert(way.end(), climb.begin(), climb.end());
  }
  return ways;
}

}  // namespace

std::size_t choose_first_layout(const PlanSetting& setting, const FirstSequences& all,
                                int most_futures, bool can_switch) {
  std::list<Start> starts;  // a pricer cannot be assigned
  for (std::size_t i = 0; i < setting.uniform.size(); ++i) {
    const LayoutShape& shape = *setting.uniform[i];
    Start& start = starts.emplace_back(Start{
        i,
        Pricer(setting.scenarios,
               initial_sequences(all.count, all.samples, all.mean_prompt, all.max_new_tokens,
                                 shape.layout),
               shape, setting.cost, setting.lengths, setting.slots_per_rank, StepPhase::kBegin),
        {}});
    for (const Way& way : can_switch ? climbs(setting, shape, all) : std::vector<Way>(1))
      start.price(shape, way);
    start.sort();
    if (!can_switch) continue;
    const Way climb = start.plans.front().rules;
    for (const Way& way : evenings(setting, shape, all.count, climb)) start.price(shape, way);
    start.sort();
  }
  const auto faster = [](const Start& a, const Start& b) { return a.mean() < b.mean(); };
  const std::int64_t best = std::min_element(starts.begin(), starts.end(), faster)->mean();
  std::erase_if(starts, [&](const Start& s) { return s.mean() - best > best / kCloseShare; });
  if (starts.size() == 1) return starts.front().index;
  const int futures = std::clamp(kMostDraws / all.count, kFewFutures, most_futures);
  for (Start& start : starts) {
    start.plans.erase(start.plans.begin() + std::min(kWaysKept, start.plans.size()),
                      start.plans.end());
    for (PricedPlan& plan : start.plans) start.pricer.price(plan, futures);
    start.sort();
  }
  return std::min_element(starts.begin(), starts.end(), faster)->index;
}

}  // namespace taper
