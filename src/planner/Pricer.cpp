// SPDX-License-Identifier: Apache-2.0
#include "planner/Pricer.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

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

Pricer::Pricer(Scenarios& scenarios, std::vector<SequenceState> sequences, const LayoutShape& shape,
               const SwitchCost& cost, const LengthModel& lengths, int slots_per_rank,
               StepPhase phase)
    : scenarios_(scenarios),
      sequences_(std::move(sequences)),
      shape_(shape),
      cost_(cost),
      lengths_(lengths),
      slots_per_rank_(slots_per_rank),
      phase_(phase) {}

// Lengths are drawn and sequences placed once for all plans, which go on from copies.
bool Pricer::play_one(std::size_t scenario) {
  if (played_.size() > scenario) return false;
  played_.push_back(scenarios_.play(static_cast<int>(played_.size()), sequences_, shape_, cost_,
                                    lengths_, slots_per_rank_, phase_));
  return true;
}

const PlayedGeneration& Pricer::played(std::size_t scenario) {
  while (play_one(scenario)) {
  }
  return played_[scenario];
}

bool Pricer::prepare(const PricedPlan& plan) {
  const std::size_t k = plan.rest_ns.size();
  if (play_one(k)) return true;
  if (ends_.size() > k) return false;
  ends_.push_back(played_[ends_.size()].ends());
  return true;
}

void Pricer::extend(PricedPlan& plan) {
  while (prepare(plan)) {
  }
  const std::size_t k = plan.rest_ns.size();
  if (plan.rules.empty()) {  // to stay: known without playing
    plan.rest_ns.push_back(ends_[k].empty() ? 0 : ends_[k].back());
  } else {
    PlayedGeneration ahead = played_[k];
    plan.rest_ns.push_back(ahead.finish(plan.rules, ends_[k]));
  }
}

void Pricer::price(PricedPlan& plan, int count) {
  while (plan.rest_ns.size() < static_cast<std::size_t>(count)) extend(plan);
  finish(plan);
}

// next_ns is what the planner waits for before it searches again (State::wait_ns), so "stay" needs
// one as well: a tenth of the sequences, less than the quarter after which a result is no longer
// kept in any case.
void Pricer::finish(PricedPlan& plan) const {
  const auto count = static_cast<std::int64_t>(plan.rest_ns.size());
  const int alive = static_cast<int>(sequences_.size());
  const int first = plan.rules.empty() ? alive - std::max(1, alive / 10) : plan.rules.front().alive;
  plan.next_ns = 0;
  for (std::int64_t k = 0; k < count && first < alive; ++k)
    plan.next_ns += ends_[k][static_cast<std::size_t>(alive - first - 1)] / count;
  // A switch now costs the same in every future: they differ only in what is still to come.
  if (!plan.rules.empty() && first >= alive)
    plan.cost_ns = played_.front()
                       .plan_change(*plan.rules.front().shape, plan.rules.front().repack)
                       .cost.total();
}

// No interpolation between values: integers, and of 8 to 48 futures no finer quantile is known.
PriceRange range_of(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  const std::size_t low = (values.size() - 1) / 10;
  return {mean_of(values), values[low], values[values.size() - 1 - low]};
}

bool is_worth_risk(const std::vector<std::int64_t>& savings, int least_gain) {
  std::int64_t gained = 0, lost = 0;
  for (const std::int64_t ns : savings) (ns > 0 ? gained : lost) += std::abs(ns);
  return gained > 0 && gained >= least_gain * lost;
}

std::vector<std::int64_t> difference(const std::vector<std::int64_t>& a,
                                     const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> d(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) d[i] = a[i] - b[i];
  return d;
}

}  // namespace taper
