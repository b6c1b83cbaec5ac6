// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/Policy.hpp"
#include "simulate/Account.hpp"

namespace taper {

// Who decides about the layout of a generation: the policy of predict/, one layout for ever, or a
// script. The contract is that of Policy: pure, the same calls give the same answers.
class LayoutPolicy {
 public:
  virtual ~LayoutPolicy() = default;

  virtual Layout begin(const Workload& workload) = 0;
  virtual Decision decide(const Snapshot& snapshot) = 0;
  virtual Confirmation confirm(const Plan& plan, const Snapshot& snapshot,
                               std::span<const SequenceState> sequences) = 0;
  virtual void switched(const Plan&, std::int64_t /*measured_ns*/) {}
  virtual void finish(std::span<const Outcome>, std::int64_t /*elapsed_ns*/) {}
  // 0 where nothing is known of step times.
  virtual std::int64_t step_ns(const LayoutGroup&, int /*new_tokens*/, int /*sequences*/,
                               std::int64_t /*context*/) const {
    return 0;
  }
  // What a generation that took place was worth, before finish() learns of it; nothing where
  // nothing is known of step times.
  virtual std::optional<GenerationReview> review(const ReplayTrace&, const Layout& /*first*/,
                                                 const std::vector<ReplaySwitch>&) const {
    return std::nullopt;
  }
  virtual std::vector<std::int64_t> save() const { return {}; }
  virtual void load(std::span<const std::int64_t>) {}
  // Throws Error where load() would.
  virtual void require_loadable(std::span<const std::int64_t>) const {}
};

// The policy of predict/.
class PredictivePolicy : public LayoutPolicy {
 public:
  PredictivePolicy(const LatencyProfile& profile, const DivisorChain& chain,
                   const PolicyOptions& options)
      : policy_(profile, chain, options),
        profile_(profile),
        chain_(chain),
        options_(options),
        machine_(profile) {}

  Layout begin(const Workload& workload) override { return policy_.begin(workload); }
  Decision decide(const Snapshot& snapshot) override { return policy_.decide(snapshot); }
  Confirmation confirm(const Plan& plan, const Snapshot& snapshot,
                       std::span<const SequenceState> sequences) override {
    return policy_.confirm(plan, snapshot, sequences);
  }
  void switched(const Plan& plan, std::int64_t ns) override { policy_.switched(plan, ns); }
  void finish(std::span<const Outcome> outcomes, std::int64_t elapsed_ns) override {
    policy_.finish(outcomes, elapsed_ns);
  }
  std::int64_t step_ns(const LayoutGroup& group, int new_tokens, int sequences,
                       std::int64_t context) const override {
    return policy_.step_ns(group, new_tokens, sequences, context);
  }
  std::optional<GenerationReview> review(const ReplayTrace& trace, const Layout& first,
                                         const std::vector<ReplaySwitch>& made) const override {
    GenerationReview found =
        taper::review(trace, first, made, options_.degrees, chain_, machine_, options_.consult_ns);
    found.predicted_ns = found.replayed_ns * policy_.scale() / 1024;
    return found;
  }
  std::vector<std::int64_t> save() const override { return policy_.save(); }
  // Throws Error where another version saved it, with what can be done.
  void load(std::span<const std::int64_t> words) override;
  void require_loadable(std::span<const std::int64_t> words) const override;

 private:
  Policy policy_;
  LatencyProfile profile_;
  DivisorChain chain_;
  PolicyOptions options_;
  SimulatedMachine machine_;  // as profiled
};

// What a script does at a consultation.
struct ScriptedChange {
  std::int64_t consultation = 0;
  Plan plan;
  bool recompute_odd = false;  // every other sequence is recomputed instead of moved
};

// One layout for ever, or the changes of a script at the consultations that it names.
class ScriptedPolicy : public LayoutPolicy {
 public:
  explicit ScriptedPolicy(Layout initial, std::vector<ScriptedChange> script = {})
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

}  // namespace taper
