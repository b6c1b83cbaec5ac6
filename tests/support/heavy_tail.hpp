// SPDX-License-Identifier: Apache-2.0
//
// Generations with a few very long responses, for tests and benchmarks of the planner.
#pragma once

#include "planner/Planner.hpp"
#include "simulate/LengthLaw.hpp"

namespace taper::test {

// Lets a planner that has seen nothing yet learn from one generation of so many responses to
// prompts of 100 tokens, and begins the next one, which is returned.
inline Workload learn_heavy_tail(Planner& planner, int sequences) {
  Workload work;
  work.sequences = sequences;
  work.prompt_tokens = 100 * std::int64_t{sequences};
  work.max_new_tokens = 1024;
  const auto lengths =
      draw_lengths(LengthLaw::kHeavyTail, 1, 0, work.sequences, work.max_new_tokens);
  std::vector<Outcome> outcomes;
  for (int i = 0; i < work.sequences; ++i) outcomes.push_back({i, 100, lengths[i], false});
  planner.begin(work);
  planner.finish(outcomes, 1'000'000'000);
  work.iteration = 1;
  planner.begin(work);
  return work;
}

}  // namespace taper::test
