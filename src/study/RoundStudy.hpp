// SPDX-License-Identifier: Apache-2.0
//
// Rounds of tail batching over responses of known lengths, beside plain rounds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "planner/Planner.hpp"
#include "rounds/PlayedRound.hpp"
#include "simulate/Simulator.hpp"

namespace taper {

// A stream of prompts whose responses are known, and the machine that generates them.
struct RoundSetting {
  int prompts = 1, samples = 1;    // that an iteration trains
  Workload work;                   // how generations are made
  std::int64_t prompt_tokens = 1;  // of each prompt
  std::int64_t stream = 0;         // prompts that are known; 0: no end
  ResponseLength length;
  // As if prompts that were put off were drawn with other random numbers; empty: not known.
  ResponseLength redrawn;
  bool has_more_samples = false;  // than `samples` are known of each prompt
  // That count, after as many to learn from: whole periods, where they keep all that they start.
  int iterations = 10;
  int long_tokens = 0;       // longer responses count as long
  std::vector<int> degrees;  // of the profile
  DivisorChain chain = DivisorChain::of(1);
  PlannerOptions planner;
};

// Responses of a stream of which `draw` gives an iteration of the plain run: `samples` of each of
// its `prompts` prompts, one after the other. Iterations count from 0, and each is drawn once.
ResponseLength drawn_by_iteration(int prompts, int samples,
                                  std::function<std::vector<int>(std::int64_t iteration)> draw);

// One way to make rounds. Times and tokens are sums over its iterations.
struct RoundResult {
  std::string name;
  int iterations = 0;
  std::int64_t static_ns = 0;                      // in the best uniform layout
  std::int64_t adaptive_ns = 0;                    // with the planner of layouts
  std::int64_t generated = 0, trained = 0;         // tokens
  std::int64_t responses = 0, long_responses = 0;  // that are trained

  double static_s() const;  // of an iteration
  double adaptive_s() const;
};

// Plain rounds first; then short rounds that choose from 1.25, 1.5 and 2 times the prompts, and
// from as many as is best by price; with more samples known, 1.25 times as many of these as well;
// and that with other random numbers, which stands for the published way. Those for which too few
// prompts are known are left out; there is nothing if these are the plain ones.
std::vector<RoundResult> study_rounds(const RoundSetting& setting, const SimulatedMachine& machine);

// A row for each result, compared with the first; `name` says what was played.
std::string round_rows(const std::string& name, std::span<const RoundResult> results);
std::string round_head();
std::string round_legend();

}  // namespace taper
