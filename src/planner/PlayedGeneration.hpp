// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/Plan.hpp"
#include "planner/PlayedReplica.hpp"
#include "planner/Snapshot.hpp"
#include "planner/SwitchCost.hpp"

namespace taper {

// The layout to continue in as soon as at most so many sequences are alive.
struct SwitchRule {
  int alive = 0;
  const LayoutShape* shape = nullptr;
  Repack repack = Repack::kNo;
};

// A simulated generation: replicas of a layout with sequences whose lengths are known, and layout
// changes at their cost. Both the future under a length scenario and a past generation under its
// true lengths are played by this.
class PlayedGeneration {
 public:
  // A replica of n ranks runs up to n * slots_per_rank sequences at a time.
  PlayedGeneration(const LayoutShape& shape, const SwitchCost& cost, int slots_per_rank);

  void add(int replica, const SimulatedSequence& sequence) { replicas_[replica].add(sequence); }
  void start();
  void delay(int replica, std::int64_t ns) { replicas_[replica].delay(ns); }

  const Layout& layout() const { return shape_->layout; }
  const std::vector<PlayedReplica>& replicas() const { return replicas_; }
  int alive() const;
  // The largest clock: of the end, if nothing is left.
  std::int64_t clock() const;
  std::int64_t slowest_step_ns() const;

  void advance(std::int64_t until);
  // To the time when at most `alive` sequences are left; ends: those of its sequences.
  void advance_to(int alive, std::span<const std::int64_t> ends);
  // To the end; its time.
  std::int64_t finish();
  // finish() with switches by the rules, in descending order of alive. The shapes must outlive it.
  // ends: those of its sequences, if the caller knows them.
  std::int64_t finish(std::span<const SwitchRule> rules, std::span<const std::int64_t> ends = {});
  // The times at which its sequences will end without a switch, ascending.
  std::vector<std::int64_t> ends() const;

  // By id; the limit is left to the caller.
  std::vector<SequenceState> states() const;
  // Where each sequence goes, replica by replica, and the cost.
  struct Change {
    std::vector<SequenceMove> moves;
    SwitchParts cost;
  };
  Change plan_change(const LayoutShape& to, Repack repack) const;
  // Carries it out now: the groups involved wait for each other.
  void apply(const LayoutShape& to, const Change& change);
  void switch_to(const LayoutShape& to, Repack repack) { apply(to, plan_change(to, repack)); }

  // As the leaders would see it; speeds are as predicted. Ids count the samples of one prompt
  // after the other.
  Snapshot snapshot(std::int64_t consultation, int samples = 1) const;

 private:
  std::vector<SequenceState> by_replica() const;
  int slots(const LayoutGroup& group) const { return slots_per_rank_ * group.tp; }

  const LayoutShape* shape_;
  const SwitchCost* cost_;
  int slots_per_rank_;
  std::vector<PlayedReplica> replicas_;
  std::int64_t finished_before_ = 0;  // at replicas of earlier layouts
  int switches_ = 0;
};

}  // namespace taper
