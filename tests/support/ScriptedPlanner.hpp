// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/Text.hpp"
#include "planner/LayoutPlanner.hpp"
#include "reshape/Meeting.hpp"
#include "support/ShareOut.hpp"

namespace taper::test {

// What a script does at a consultation.
struct ScriptedChange {
  std::int64_t consultation = 0;
  Plan plan;
  bool recompute_odd = false;  // every other sequence is recomputed instead of moved
};

// Changes of layout at the consultations that a script names.
class ScriptedPlanner : public LayoutPlanner {
 public:
  explicit ScriptedPlanner(Layout initial, std::vector<ScriptedChange> script = {})
      : initial_(std::move(initial)), script_(std::move(script)) {}

  Layout begin(const Workload&) override { return initial_; }
  Decision decide(const Snapshot& snapshot) override;
  Confirmation confirm(const Plan& plan, const Snapshot& snapshot,
                       std::span<const SequenceState> sequences) override;

 private:
  const ScriptedChange* at(std::int64_t consultation) const;

  Layout initial_;
  std::vector<ScriptedChange> script_;
};

inline const ScriptedChange* ScriptedPlanner::at(std::int64_t consultation) const {
  for (const ScriptedChange& change : script_)
    if (change.consultation == consultation) return &change;
  return nullptr;
}

inline Decision ScriptedPlanner::decide(const Snapshot& snapshot) {
  Decision decision{.act = false,
                    .plan = {snapshot.layout, PlanStart::kNow, 0, Repack::kNo},
                    .prices = {},
                    .wait_ns = 0,
                    .reason = "stay",
                    .hash = 0};
  if (const ScriptedChange* change = at(snapshot.consultation)) {
    decision.act = true;
    decision.plan = change->plan;
    decision.reason = "script";
  }
  decision.hash = fnv1a(std::to_string(snapshot.epoch) + " " +
                        std::to_string(snapshot.consultation) + " " + to_string(decision.plan));
  return decision;
}

inline Confirmation ScriptedPlanner::confirm(const Plan& plan, const Snapshot& snapshot,
                                             std::span<const SequenceState> sequences) {
  SequenceList list(sequences.size());
  for (std::size_t i = 0; i < sequences.size(); ++i) list[i].replica = sequences[i].replica;
  const auto destinations =
      share_out({snapshot.layout, plan.layout, 0}, list, plan.repack == Repack::kYes);
  const ScriptedChange* change = at(snapshot.consultation);
  Confirmation confirmation;
  confirmation.act = true;
  confirmation.reason = "script";
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const bool recompute = change != nullptr && change->recompute_odd && i % 2 == 1;
    confirmation.moves.push_back({sequences[i].id, sequences[i].replica, destinations[i].replica,
                                  recompute ? KvAction::kRecompute : KvAction::kMove});
  }
  return confirmation;
}

}  // namespace taper::test
