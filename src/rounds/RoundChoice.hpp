// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/LayoutPlanner.hpp"
#include "planner/LengthModel.hpp"
#include "planner/PromptLikeness.hpp"
#include "planner/Replay.hpp"
#include "planner/Scenarios.hpp"
#include "planner/StepModel.hpp"
#include "planner/SwitchCost.hpp"

namespace taper {

// From how many prompts short rounds of tail batching choose, by price: the mean time of a period,
// its short rounds and the long one that they fill, for each prompt that it keeps. Prices come from
// a profile as it stands in its file and from the lengths of past responses alone, so a repetition
// of a run chooses alike, and so does one that goes on from a checkpoint.
class RoundChoice {
 public:
  // Each round has the time of the fastest of these layouts, whose degrees the profile must have,
  // without a change on the way. limit: of response tokens.
  RoundChoice(const LatencyProfile& profile, std::span<const Layout> layouts, int limit);
  RoundChoice(const RoundChoice&) = delete;  // its layouts refer to its step model
  RoundChoice& operator=(const RoundChoice&) = delete;

  // What a choice is of, in multiples of the prompts that are kept; 1: nothing is put off.
  static constexpr double kChoices[] = {1.0, 1.25, 1.5, 2.0};

  // `work` is a generation that keeps all that it starts, `now` the present choice: another one has
  // to be better by 2 %. 1 as long as nothing is known of lengths. Pure: all ranks that have
  // learned alike choose alike.
  double choose(const Workload& work, double now);
  // Time for each prompt that is kept, in ns; lower is better.
  std::int64_t price(const Workload& work, double choice);

  // The lengths of the responses that a round keeps, `samples` of each prompt, in the order of
  // prompts. They count once end_period() is called: over a period each prompt is kept once,
  // whereas the responses of one round are those of short or of long ones. How long responses had
  // become that were given up depends on time, and must not come here.
  void add(std::span<const int> kept);
  void end_period(int samples);

  // 8-byte integers (ByteWriter). load() throws Error if they are damaged.
  std::string save() const;
  void load(std::string_view bytes);

 private:
  std::int64_t fastest_ns(const ReplayTrace& trace) const;

  StepModel steps_;
  SwitchCost cost_;
  std::vector<LayoutShape> shapes_;
  int limit_;
  std::vector<std::int32_t> kept_;  // in the present period
  LengthModel lengths_;
  PromptLikeness likeness_;
};

}  // namespace taper
