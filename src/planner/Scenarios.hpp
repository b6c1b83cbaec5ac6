// SPDX-License-Identifier: Apache-2.0
//
// The sequences of a generation as far as they are known, and random futures of their lengths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/Random.hpp"
#include "planner/LayoutPlanner.hpp"
#include "planner/LengthModel.hpp"
#include "planner/Plan.hpp"
#include "planner/PlayedGeneration.hpp"
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

// Where replicas are in their steps: all at the begin of one, as after a meeting, or anywhere.
enum class StepPhase { kBegin, kAnywhere };

// The same futures for all plans that are compared: the uniform numbers of (sequence, scenario),
// (prompt, scenario) and (replica, scenario) are functions of seed and iteration alone.
class Scenarios {
 public:
  explicit Scenarios(std::uint64_t seed) : random_(seed) {}

  // share: see PromptLikeness; surplus: of a generation on so many ranks that is a race.
  void begin(std::int64_t iteration, int share, const Surplus& surplus = {}, int ranks = 1);

  // The final lengths of the given sequences in one scenario, if all go on to their ends.
  std::vector<int> lengths(int scenario, std::span<const SequenceState> sequences,
                           const LengthModel& model);
  // The given sequences, played in the layout, with the lengths of one scenario. Clocks of
  // replicas are 0 or, anywhere in their steps, at the ends of these. In a race no sequence goes on
  // once its prompt has enough responses, or enough prompts have. Fewer ranks stand for a part of
  // the generation.
  PlayedGeneration play(int scenario, std::span<const SequenceState> sequences,
                        const LayoutShape& shape, const SwitchCost& cost,
                        const LengthModel& lengths, int slots_per_rank, StepPhase phase);
  // How long a rank waits until all have ended their steps, in the mean over `count` scenarios;
  // step_ns, ranks: of each replica.
  std::int64_t arrival_ns(std::span<const std::int64_t> step_ns, std::span<const int> ranks,
                          int count);

 private:
  // Two 32-bit numbers, those of two scenarios, by pair of scenarios and by sequence or prompt;
  // grown as needed, so that few scenarios of many sequences need few numbers.
  struct Table {
    std::uint32_t key;  // tells the tables apart
    std::vector<std::vector<std::uint64_t>> pairs{};
  };
  std::uint32_t uniform(Table& table, std::size_t index, int scenario);
  std::uint32_t uniform(std::size_t place, const SequenceState& sequence, int scenario);
  // What a replica anywhere in its step has left of it; its tokens count for nothing. The step is
  // one that only decodes, without drafts.
  std::int64_t left_ns(std::int64_t step_ns, std::size_t replica, int scenario) {
    return (step_ns * (uniform(replicas_, replica, scenario) >> 16)) >> 16;
  }
  void cut_race(std::span<const SequenceState> sequences, int ranks,
                std::vector<int>& lengths) const;

  CounterRandom random_;
  std::int64_t iteration_ = 0;
  std::uint32_t share_ = 0;
  Surplus surplus_;
  int ranks_ = 1;
  Table sequences_{0}, prompts_{1}, replicas_{2};
};

}  // namespace taper
