// SPDX-License-Identifier: Apache-2.0
//
// What a layout change does to the sequences, and what it costs.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "planner/LatencyProfile.hpp"
#include "planner/Plan.hpp"
#include "planner/StepModel.hpp"

namespace taper {

// A layout with the step curves of its groups.
struct LayoutShape {
  Layout layout;
  std::vector<const StepCurve*> curves;  // by replica
};
LayoutShape resolve(const Layout& layout, const StepModel& steps);

// Where each sequence goes. A sequence stays in the group that contains its own; a group that
// splits deals its sequences to its parts, the longest first, each to the part with the fewest.
// Repacked, between groups of equal degree sequences then move (waiting ones first, then the
// shortest, which are cheap) until none has two more than another. Among equals the id decides,
// never the order of the list. kv is kMove if a rank lacks something of the sequence, else
// kKeep.
std::vector<SequenceMove> place_sequences(const Layout& from, const Layout& to, Repack repack,
                                          std::span<const SequenceState> sequences);

class SwitchCost {
 public:
  // Refers to the profile.
  explicit SwitchCost(const LatencyProfile& profile) : profile_(&profile) {}

  // Time of the switch by part: groups act side by side, so each part is that of the slowest.
  // Turns kMove into kRecompute for each sequence if reading its tokens again is cheaper.
  SwitchParts price(const Layout& from, const LayoutShape& to,
                    std::span<const SequenceState> sequences, std::span<SequenceMove> moves) const;

 private:
  // Positions that move between a replica before and one after.
  using Flows = std::map<std::pair<int, int>, std::int64_t>;

  std::int64_t rendezvous_ns(int ranks) const;
  const MoveCost& move_cost(PairClass pair) const;
  const MoveCost& move_between(const LayoutGroup& a, const LayoutGroup& b) const;
  int meeting(const Layout& from, const Layout& to, std::span<const SequenceMove> moves) const;
  std::int64_t transfer_ns(const Layout& from, const Layout& to, const Flows& flows,
                           std::int64_t& kv_bytes) const;

  const LatencyProfile* profile_;
};

}  // namespace taper
