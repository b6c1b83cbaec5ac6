// SPDX-License-Identifier: Apache-2.0
#include "rollout/LayoutPolicy.hpp"

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "reshape/Meeting.hpp"

namespace taper {
namespace {

void load_into(Policy& policy, std::span<const std::int64_t> words) {
  try {
    policy.load(words);
  } catch (const Error& error) {
    TAPER_FAIL(error.code(), "the checkpoint cannot be used with Rollout/Mode advise or adaptive ("
                                 << error.what()
                                 << "); go on with Rollout/Mode=static, which samples the same "
                                    "tokens, with the version of Taper that wrote it, or start "
                                    "over with --resume none");
  }
}

}  // namespace

void PredictivePolicy::load(std::span<const std::int64_t> words) {
  load_into(policy_, words);
}

void PredictivePolicy::require_loadable(std::span<const std::int64_t> words) const {
  Policy trial(profile_, chain_, options_);
  load_into(trial, words);
}

const ScriptedChange* ScriptedPolicy::at(std::int64_t consultation) const {
  for (const ScriptedChange& change : script_)
    if (change.consultation == consultation) return &change;
  return nullptr;
}

Decision ScriptedPolicy::decide(const Snapshot& snapshot) {
  Decision decision{.act = false,
                    .plan = {snapshot.layout, PlanStart::kNow, 0, false},
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

Confirmation ScriptedPolicy::confirm(const Plan& plan, const Snapshot& snapshot,
                                     std::span<const SequenceState> sequences) {
  SequenceList list(sequences.size());
  for (std::size_t i = 0; i < sequences.size(); ++i) list[i].replica = sequences[i].replica;
  const auto destinations = share_out({snapshot.layout, plan.layout, 0}, list, plan.repack);
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

}  // namespace taper
