// SPDX-License-Identifier: Apache-2.0
#include "simulate/Account.hpp"

#include <algorithm>
#include <utility>

#include "simulate/FixedRules.hpp"

namespace taper {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// When a generation that ended at `end_ns` in replay would have ended without each of its switches
// and all later ones, which saved so much; last, its end with all of them.
std::vector<std::int64_t> ends_without(const std::vector<std::int64_t>& saved_ns,
                                       std::int64_t end_ns) {
  std::vector<std::int64_t> ends;
  for (const std::int64_t saved : saved_ns) ends.push_back(end_ns + saved);
  ends.push_back(end_ns);
  return ends;
}

// Holds each forecast against the end without the switches that came after it: a forecast is one of
// staying, and those that no switch followed are mostly of generations that ended early. The
// generation took made.time_ns, and ends_ns.back() in replay.
ForecastFigures check_forecasts(const MadeGeneration& made,
                                const std::vector<std::int64_t>& ends_ns) {
  ForecastFigures figures;
  const double slowdown = ratio(made.time_ns, ends_ns.back());
  for (const RestForecast& f : made.forecasts) {
    const std::int64_t rest =
        static_cast<std::int64_t>(static_cast<double>(ends_ns[f.switches]) * slowdown) - f.at_ns;
    figures += {1, rest < f.rest.low, rest < f.rest.mean, rest < f.rest.high};
  }
  return figures;
}

// The index of the smallest sum over a run.
std::size_t best_over(std::span<const GenerationAccount> run,
                      std::vector<std::int64_t> GenerationAccount::*times) {
  std::vector<std::int64_t> totals((run.front().*times).size(), 0);
  for (const GenerationAccount& g : run)
    for (std::size_t k = 0; k < totals.size(); ++k) totals[k] += (g.*times)[k];
  return static_cast<std::size_t>(std::min_element(totals.begin(), totals.end()) - totals.begin());
}

}  // namespace

std::vector<GenerationAccount> account(std::span<const ReplayTrace> traces,
                                       const PlannerOptions& planner,
                                       const std::vector<int>& degrees, const DivisorChain& chain,
                                       const SimulatedMachine& machine,
                                       const AccountOptions& options) {
  PlannerOptions myopic_options = planner;
  myopic_options.look_ahead = false;
  Planner ours(machine.profile, chain, planner), myopic(machine.profile, chain, myopic_options);
  std::vector<GenerationAccount> list;
  int played = 0, sequences = 0;
  for (const ReplayTrace& trace : traces) sequences = std::max(sequences, trace.work.sequences);
  const FixedRules rules(degrees, chain, machine, sequences);
  for (const ReplayTrace& trace : traces) {
    const auto adaptive = simulate(ours, planner, trace, machine);
    const std::int64_t myopic_ns = simulate(myopic, myopic_options, trace, machine).time_ns;
    if (played++ < options.warm_up) continue;
    const Layout any = Layout::uniform(degrees.front(), chain);
    GenerationAccount g{trace.work.iteration, adaptive, myopic_ns, {}, {}, {0, any, {}}, {}};
    if (options.grid > 0) {
      g.rule_ns = rules.times(trace);
      g.oracle = best_plan(trace, degrees, chain, machine, planner.consult_ns, options.grid);
    }
    for (const int tp : degrees)
      g.static_ns.push_back(replay_ns(trace, Layout::uniform(tp, chain), {}, machine));
    MadeGeneration made{adaptive.first, {}, adaptive.time_ns, adaptive.forecasts};
    std::vector<std::int64_t> saved_ns;
    for (const SimulatedSwitch& s : adaptive.switches) {
      made.switches.push_back(s.made);
      saved_ns.push_back(s.saved_ns);
    }
    g.forecasts = check_forecasts(made, ends_without(saved_ns, made.time_ns));
    list.push_back(std::move(g));
  }
  return list;
}

ForecastFigures& ForecastFigures::operator+=(const ForecastFigures& other) {
  count += other.count;
  below_low += other.below_low;
  below_mean += other.below_mean;
  below_high += other.below_high;
  return *this;
}

GenerationReview review(const ReplayTrace& trace, const MadeGeneration& made,
                        const std::vector<int>& degrees, const DivisorChain& chain,
                        const SimulatedMachine& machine, std::int64_t consult_ns) {
  GenerationReview r;
  r.stayed_ns = replay_ns(trace, made.first, {}, machine);
  r.replayed_ns = replay_ns(trace, made.first, made.switches, machine);
  r.degrees = degrees;
  for (const int tp : degrees)
    r.static_ns.push_back(replay_ns(trace, Layout::uniform(tp, chain), {}, machine));
  const int grid = quick_grid(trace.work.sequences, static_cast<int>(degrees.size()));
  r.oracle_ns = best_plan(trace, degrees, chain, machine, consult_ns, grid).time_ns;
  r.saved_ns = savings(trace, made.first, made.switches, r.replayed_ns, machine);
  r.forecasts = check_forecasts(made, ends_without(r.saved_ns, r.replayed_ns));
  return r;
}

void add_run(AccountSummary& summary, std::span<const GenerationAccount> run) {
  if (run.empty()) return;
  const std::size_t best = best_over(run, &GenerationAccount::static_ns),
                    rule = best_over(run, &GenerationAccount::rule_ns);
  for (const GenerationAccount& g : run) {
    const std::int64_t fixed = g.static_ns[best], ours = g.adaptive.time_ns;
    ++summary.generations;
    summary.static_ns += fixed;
    summary.adaptive_ns += ours;
    summary.switching_ns += g.adaptive.switching_ns;
    summary.slower.push_back(ratio(ours - fixed, fixed));
    const std::int64_t room = g.oracle.time_ns > 0 ? fixed - g.oracle.time_ns : 0;
    if (room * 50 >= fixed) {
      ++summary.with_room;
      summary.room_ns += room;
      summary.gain_ns += fixed - ours;
      summary.myopic_gain_ns += fixed - g.myopic_ns;
      if (!g.rule_ns.empty()) summary.rule_gain_ns += fixed - g.rule_ns[rule];
      summary.missed += (fixed - ours) * 2 < room;
    }
    for (const SimulatedSwitch& s : g.adaptive.switches) {
      ++summary.switches;
      if (s.saved_ns >= 0) continue;
      ++summary.false_triggers;
      summary.false_loss_ns -= s.saved_ns;
    }
    summary.forecasts += g.forecasts;
  }
  std::sort(summary.slower.begin(), summary.slower.end());
}

double AccountSummary::share() const {
  return ratio(gain_ns, room_ns);
}
double AccountSummary::myopic_share() const {
  return ratio(myopic_gain_ns, room_ns);
}

double AccountSummary::rule_share() const {
  return ratio(rule_gain_ns, room_ns);
}

double AccountSummary::mean_slower() const {
  double sum = 0;
  for (const double x : slower) sum += std::max(0.0, x);
  return slower.empty() ? 0.0 : sum / static_cast<double>(slower.size());
}

double AccountSummary::slower_quantile(int percent) const {
  return slower.empty() ? 0.0 : slower[(slower.size() - 1) * percent / 100];
}

}  // namespace taper
