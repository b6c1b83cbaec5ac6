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

// To stay, and ways up the ladder. The ladder compares step times alone. A switch also costs time,
// so climbing later, with fewer sequences left, may be better; how much later is tried in about
// equal ratios.
std::vector<Way> climbs(const PlanSetting& setting, const LayoutShape& from,
                        const FirstSequences& all) {
  std::vector<Way> ways{{}};
  if (!setting.look_ahead) return ways;
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
  if (!setting.look_ahead || !setting.repack || from.layout.replicas() < 2) return ways;
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

// A layout to start in, with the ways on from it that seem best.
class Start {
 public:
  Start(const PlanSetting& setting, const FirstSequences& all, std::size_t index)
      : index_(index),
        shape_(*setting.uniform[index]),
        pricer_(setting.scenarios,
                initial_sequences(all.count, all.samples, all.mean_prompt, all.max_new_tokens,
                                  shape_.layout),
                shape_, setting.cost, setting.lengths, setting.slots_per_rank, StepPhase::kBegin) {
    add(climbs(setting, shape_, all));
    const Way climb = plans_.front().rules;
    add(evenings(setting, shape_, all.count, climb));
    plans_.erase(plans_.begin() + std::min(kWaysKept, plans_.size()), plans_.end());
  }

  std::size_t index() const { return index_; }
  std::int64_t mean() const { return plans_.front().mean(); }
  void price(int futures) {
    for (PricedPlan& plan : plans_) pricer_.price(plan, futures);
    sort();
  }

 private:
  void add(const std::vector<Way>& ways) {
    for (const Way& way : ways)
      pricer_.price(plans_.emplace_back(stay_in(shape_.layout), way), kFewFutures);
    sort();
  }
  void sort() {
    std::stable_sort(plans_.begin(), plans_.end(),
                     [](const PricedPlan& a, const PricedPlan& b) { return a.mean() < b.mean(); });
  }

  std::size_t index_;
  const LayoutShape& shape_;
  Pricer pricer_;
  std::vector<PricedPlan> plans_;  // the best one first
};

}  // namespace

std::size_t choose_first_layout(const PlanSetting& setting, const FirstSequences& all,
                                int most_futures) {
  std::list<Start> starts;  // a pricer cannot be assigned
  for (std::size_t i = 0; i < setting.uniform.size(); ++i) starts.emplace_back(setting, all, i);
  const auto faster = [](const Start& a, const Start& b) { return a.mean() < b.mean(); };
  const std::int64_t best = std::min_element(starts.begin(), starts.end(), faster)->mean();
  std::erase_if(starts, [&](const Start& s) { return s.mean() - best > best / kCloseShare; });
  if (starts.size() > 1)
    for (Start& start : starts)
      start.price(std::clamp(kMostDraws / all.count, kFewFutures, most_futures));
  return std::min_element(starts.begin(), starts.end(), faster)->index();
}

}  // namespace taper
