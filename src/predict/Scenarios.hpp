// SPDX-License-Identifier: Apache-2.0
//
// The sequences of a generation as far as they are known, and random futures of their lengths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/Random.hpp"
#include "predict/GenerationRun.hpp"
#include "predict/LengthModel.hpp"
#include "predict/Plan.hpp"
#include "predict/Snapshot.hpp"

namespace taper {

// Sequences that fit a snapshot: within a bucket all alike, at the same relative place in each
// bucket, so that the summed lengths are right. Waiting ones come last, with the mean prompt.
// Ids count up. `limit`: of response tokens.
std::vector<SequenceState> expand(const Snapshot& snapshot, std::int64_t mean_prompt, int limit);

// The same futures for all plans that are compared: the uniform number of (sequence, scenario) is a
// function of seed and iteration alone.
class Scenarios {
 public:
  Scenarios(std::uint64_t seed, int count) : random_(seed), count_(count) {}

  void begin(std::int64_t iteration);
  int count() const { return count_; }

  // A run of the given sequences in the layout, with the lengths of one scenario, at time 0.
  GenerationRun run(int scenario, std::span<const SequenceState> sequences,
                    const LayoutShape& shape, const SwitchCost& cost, const LengthModel& lengths,
                    int slots_per_rank);

 private:
  std::uint32_t uniform(std::size_t sequence, int scenario);

  CounterRandom random_;
  int count_;
  std::int64_t iteration_ = 0;
  std::vector<std::uint32_t> table_;  // (sequences, scenarios), grown as needed
};

}  // namespace taper
