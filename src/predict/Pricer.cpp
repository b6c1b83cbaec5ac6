// SPDX-License-Identifier: Apache-2.0
#include "predict/Pricer.hpp"

#include <algorithm>
#include <numeric>

namespace taper {
namespace {

std::int64_t mean_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0}) /
         std::max<std::int64_t>(1, static_cast<std::int64_t>(values.size()));
}

}  // namespace

std::int64_t PricedPlan::mean() const {
  return mean_of(rest_ns);
}

Pricer::Pricer(Scenarios& scenarios, int count, std::span<const SequenceState> sequences,
               const LayoutShape& shape, const SwitchCost& cost, const LengthModel& lengths,
               int slots_per_rank) {
  for (int k = 0; k < count; ++k) {
    runs_.push_back(scenarios.run(k, sequences, shape, cost, lengths, slots_per_rank));
    ends_.push_back(runs_.back().ends());
  }
}

void Pricer::price(PricedPlan& plan, int count) const {
  const int alive = runs_.front().alive();
  for (std::size_t k = plan.rest_ns.size(); k < static_cast<std::size_t>(count); ++k) {
    if (plan.rules.empty()) {
      plan.rest_ns.push_back(ends_[k].empty() ? 0 : ends_[k].back());
    } else {
      GenerationRun run = runs_[k];
      plan.rest_ns.push_back(run.finish(plan.rules, ends_[k]));
    }
  }
  const int first = plan.rules.empty() ? alive - std::max(1, alive / 10) : plan.rules.front().alive;
  plan.next_ns = 0;
  for (int k = 0; k < count && first < alive; ++k)
    plan.next_ns += ends_[k][static_cast<std::size_t>(alive - first - 1)] / count;
  if (!plan.rules.empty() && first >= alive)
    plan.cost_ns = runs_.front()
                       .plan_change(*plan.rules.front().shape, plan.rules.front().repack)
                       .cost.total();
}

PriceRange range_of(std::vector<std::int64_t> values, int low_percent) {
  std::sort(values.begin(), values.end());
  const std::size_t low = (values.size() - 1) * low_percent / 100;
  return {mean_of(values), values[low], values[values.size() - 1 - low]};
}

std::vector<std::int64_t> difference(const std::vector<std::int64_t>& a,
                                     const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> d(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) d[i] = a[i] - b[i];
  return d;
}

}  // namespace taper
