// SPDX-License-Identifier: Apache-2.0
//
// Past generations played again by the step model, under their true lengths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/Planner.hpp"
#include "planner/PlayedGeneration.hpp"

namespace taper {

// All sequences of a generation before it starts, waiting, as a Dealer deals them: prompts of
// `prompt` tokens with `samples` responses each.
std::vector<SequenceState> initial_sequences(int sequences, int samples, std::int64_t prompt,
                                             int limit, const Layout& layout);

// A generation with its true lengths.
struct ReplayTrace {
  Workload work;
  std::vector<Outcome> outcomes;  // in order of submission
};
ReplayTrace make_trace(const Workload& work, std::span<const Outcome> outcomes);

// The generation at its start in a layout.
PlayedGeneration start_replay(const ReplayTrace& trace, const LayoutShape& shape,
                              const SwitchCost& cost);

// A switch that was made.
struct ReplaySwitch {
  std::int64_t at_ns = 0;
  Layout layout;
  Repack repack = Repack::kNo;
};

}  // namespace taper
