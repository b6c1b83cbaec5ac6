// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/MetricValues.hpp"
#include "results/RunFile.hpp"
#include "rl/SampleSet.hpp"
#include "rounds/PromptRounds.hpp"

namespace taper {

// Which of the responses a round keeps: all, or those that win its race. samples: all of the round,
// in the order of their ids; those that were given up have kAbort.
std::vector<bool> kept_rows(const Round& round, const std::vector<SampleSummary>& samples);

// What became of the responses of a round of tail batching.
struct RoundReport {
  RoundKind kind = RoundKind::kPlain;
  std::int64_t prompts = 0, responses = 0;  // started
  std::int64_t kept = 0;                    // responses
  std::int64_t aborted = 0;                 // responses
  std::int64_t tokens = 0, unkept_tokens = 0;
  int longest_kept = 0;      // tokens
  std::int64_t waiting = 0;  // prompts that wait for a long round, after this one

  // Arguments and result of kept_rows().
  RoundReport(const Round& round, const std::vector<SampleSummary>& samples,
              const std::vector<bool>& kept_rows);
};

// Totals of the rounds of an iteration: rollout/short_rounds, rollout/aborted_responses, ...
MetricValues round_metrics(std::span<const RoundReport> rounds);

// Adds a row for each round to the table rounds of the run file.
void add_rounds(RunFile& file, std::int64_t iteration, std::span<const RoundReport> rounds);

}  // namespace taper
