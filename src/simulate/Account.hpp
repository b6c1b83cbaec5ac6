// SPDX-License-Identifier: Apache-2.0
//
// What switching brought, told by the true lengths: the account of a series of generations.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulate/Oracle.hpp"
#include "simulate/Simulator.hpp"

namespace taper {

// Forecasts of the time to the last sequence, and how many of them came true below the lower and
// upper quantile and the mean.
struct ForecastFigures {
  int count = 0, below_low = 0, below_mean = 0, below_high = 0;

  ForecastFigures& operator+=(const ForecastFigures& other);
};

struct GenerationAccount {
  std::int64_t iteration = 0;
  SimulatedGeneration adaptive;
  std::int64_t myopic_ns = 0;           // the rule that compares "stay" and "now" only
  std::vector<std::int64_t> static_ns;  // by degree
  std::vector<std::int64_t> rule_ns;    // by fixed rule; empty without them
  OracleResult oracle;
  ForecastFigures forecasts;
};

struct AccountOptions {
  int grid = 32;    // see best_plan(); 0: neither the oracle (its time is 0) nor fixed rules
  int warm_up = 0;  // generations that are played first, and learned from, but not accounted
};

// Plays the generations in order: the planner starts knowing nothing and learns from each.
std::vector<GenerationAccount> account(std::span<const ReplayTrace> traces,
                                       const PlannerOptions& planner,
                                       const std::vector<int>& degrees, const DivisorChain& chain,
                                       const SimulatedMachine& machine,
                                       const AccountOptions& options);

// A generation that took place: layouts, time, and forecasts of staying.
struct MadeGeneration {
  Layout first;
  std::vector<ReplaySwitch> switches;
  std::int64_t time_ns = 0;
  std::vector<RestForecast> forecasts;
};

// What it was worth: replayed with its true lengths.
struct GenerationReview {
  std::int64_t replayed_ns = 0;  // with the switches that were made
  // The same times the slowness of the machine that earlier generations have shown; review() leaves
  // it to the caller.
  std::int64_t predicted_ns = 0;
  std::int64_t stayed_ns = 0;  // in its first layout to the end
  std::vector<int> degrees;
  std::vector<std::int64_t> static_ns;  // by degree
  std::int64_t oracle_ns = 0;
  std::vector<std::int64_t> saved_ns;  // by switch, against none from there on
  ForecastFigures forecasts;
};
GenerationReview review(const ReplayTrace& trace, const MadeGeneration& made,
                        const std::vector<int>& degrees, const DivisorChain& chain,
                        const SimulatedMachine& machine, std::int64_t consult_ns);

// Sums over generations of one or more runs. Gains are against the static layout that is best over
// the whole run.
struct AccountSummary {
  int generations = 0;
  int with_room = 0;           // where the oracle gains 2 % or more
  std::int64_t static_ns = 0;  // of all generations
  std::int64_t adaptive_ns = 0;
  std::int64_t switching_ns = 0;
  std::int64_t room_ns = 0;         // what the oracle gains, over generations with room
  std::int64_t gain_ns = 0;         // what the planner gains there
  std::int64_t myopic_gain_ns = 0;  // what the myopic rule gains there
  std::int64_t rule_gain_ns = 0;    // what the fixed rule does that is best over the whole run
  int switches = 0;
  int false_triggers = 0;  // switches after which staying would have been faster
  std::int64_t false_loss_ns = 0;
  int missed = 0;              // generations with room of which less than half was realized
  std::vector<double> slower;  // than the best static layout, share, by generation, ascending
  ForecastFigures forecasts;

  double share() const;  // of the oracle's gain
  double myopic_share() const;
  double rule_share() const;
  double mean_slower() const;  // of what is positive
  double slower_quantile(int percent) const;
};

void add_run(AccountSummary& summary, std::span<const GenerationAccount> run);

}  // namespace taper
