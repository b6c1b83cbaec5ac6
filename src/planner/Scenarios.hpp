// SPDX-License-Identifier: Apache-2.0
//
// The sequences of a generation as far as they are known, and random futures of their lengths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/Random.hpp"
#include "planner/GenerationRun.hpp"
#include "planner/LengthModel.hpp"
#include "planner/Plan.hpp"
#include "planner/Snapshot.hpp"

namespace taper {

// Sequences that fit a snapshot: within a bucket all alike, at the same relative place in each
// bucket, so that the summed lengths are right. Waiting ones come last, with the mean prompt.
// Responses of a prompt have neighboring lengths. Ids count up.
struct ExpandOptions {
  std::int64_t mean_prompt = 0;  // tokens
  int limit = 1;                 // of response tokens
  int samples = 1;               // of a prompt
  int readers = 1;               // neighboring replicas that have some of them
};
std::vector<SequenceState> expand(const Snapshot& snapshot, const ExpandOptions& options);

// The same futures for all plans that are compared: the uniform numbers of (sequence, scenario) and
// (prompt, scenario) are functions of seed and iteration alone.
class Scenarios {
 public:
  Scenarios(std::uint64_t seed, int count) : random_(seed), count_(count) {}

  // share: see PromptLikeness.
  void begin(std::int64_t iteration, int share);
  int count() const { return count_; }

  // A run of the given sequences in the layout, with the lengths of one scenario, at time 0.
  GenerationRun run(int scenario, std::span<const SequenceState> sequences,
                    const LayoutShape& shape, const SwitchCost& cost, const LengthModel& lengths,
                    int slots_per_rank);

 private:
  using Table = std::vector<std::uint32_t>;  // (sequences or prompts, scenarios), grown as needed
  std::uint32_t uniform(Table& table, std::size_t index, int scenario);
  std::uint32_t uniform(std::size_t place, const SequenceState& sequence, int scenario);

  CounterRandom random_;
  int count_;
  std::int64_t iteration_ = 0;
  std::uint32_t share_ = 0;
  Table sequences_, prompts_;
};

}  // namespace taper
