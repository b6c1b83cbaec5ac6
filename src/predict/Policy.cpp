// SPDX-License-Identifier: Apache-2.0
#include "predict/Policy.hpp"

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {

std::vector<std::string> PolicyOptions::problems() const {
  std::vector<std::string> list;
  if (scenarios < 32 || scenarios > 64) list.push_back("scenarios must be in [32, 64]");
  if (low_percent < 1 || low_percent > 50) list.push_back("low_percent must be in [1, 50]");
  if (max_switches < 0) list.push_back("max_switches must not be negative");
  if (budget_ppm < 0 || fallback_ppm < 0) list.push_back("budgets must not be negative");
  if (half_life < 1) list.push_back("half_life must be at least 1 iteration");
  if (consult_ns < 0 || consult_steps < 1)
    list.push_back("the period of consultation must be positive");
  for (const int tp : degrees)
    if (tp < 1) list.push_back("tensor-parallel degrees must be positive");
  return list;
}

struct Policy::State {
  LatencyProfile profile;
  DivisorChain chain;
  PolicyOptions options;
};

Policy::Policy(const LatencyProfile& profile, const DivisorChain& chain,
               const PolicyOptions& options)
    : state_(std::make_unique<State>(State{profile, chain, options})) {
  for (const auto& problem : options.problems())
    TAPER_FAIL(ExitCode::kBadInput, "layout policy: " << problem);
  require_degrees(profile, options.degrees);
}
Policy::~Policy() = default;
Policy::Policy(Policy&&) noexcept = default;

Layout Policy::begin(const Workload&) {
  const PolicyOptions& options = state_->options;
  if (!options.initial.empty()) return parse_layout(options.initial, state_->chain);
  return Layout::uniform(state_->chain.degrees().front(), state_->chain);
}

Decision Policy::decide(const Snapshot& snapshot) {
  Decision decision{.act = false,
                    .plan = {snapshot.layout, PlanStart::kNow, 0, false},
                    .prices = {},
                    .reason = "stay",
                    .hash = 0};
  const std::string key = std::to_string(snapshot.epoch) + " " +
                          std::to_string(snapshot.consultation) + " " + to_string(decision.plan);
  decision.hash = fnv1a(key);
  return decision;
}

Confirmation Policy::confirm(const Plan&, const Snapshot&, std::span<const SequenceState>) {
  return {};
}

void Policy::switched(const Plan&, const Confirmation&, std::int64_t) {}
void Policy::finish(std::span<const Outcome>, std::int64_t) {}

std::int64_t Policy::step_ns(const LayoutGroup& group, int, int, std::int64_t) const {
  std::int64_t ns = 1;
  for (const StepSample& s : state_->profile.steps)
    if (s.tp == group.tp) ns = s.median_ns;
  return ns;
}

std::vector<std::int64_t> Policy::save() const {
  return {};
}
void Policy::load(std::span<const std::int64_t>) {}

}  // namespace taper
