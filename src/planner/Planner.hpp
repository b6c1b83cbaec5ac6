// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/LatencyProfile.hpp"
#include "planner/LayoutPlanner.hpp"
#include "shard/RankGrid.hpp"

namespace taper {

enum class PlannerMode {
  kStatic,  // one layout for the whole run
  kAdvise,  // decide() says what it would do; act is never set
  kAdaptive,
};

struct PlannerOptions {
  static constexpr int kLeastScenarios = 32, kMostScenarios = 64;

  PlannerMode mode = PlannerMode::kAdaptive;
  std::vector<int> degrees;  // TP degrees that may be used; empty: those of profile and chain
  std::string initial;       // layout at the start of each generation; empty: chosen
  // Groups of different degrees too; uniform layouts only if a sample of the ranks is priced.
  bool mixed_groups = true;
  bool repack = true;      // sequences may change replica without a change of degree
  int max_switches = 64;   // in one generation
  int scenarios = 48;      // of lengths, within the bounds above
  std::uint64_t seed = 0;  // of the scenarios
  // Over the futures in which it saves time a switch must save so many times what it loses in the
  // others.
  int least_gain = 10;
  // Spending on switches stays below this share of the elapsed time plus the savings realized.
  std::int64_t budget_ppm = 20000;
  // Cumulative loss against the best static layout, of the generation time, that ends switching.
  std::int64_t fallback_ppm = 5000;
  bool drafts = true;      // steps have drafts, if earlier ones had: a saved planner knows of them
  bool look_ahead = true;  // false: only "stay" and "now" are compared, the myopic rule
  int half_life = 3;       // iterations after which lengths count half
  std::int64_t consult_ns = 25'000'000;  // period of consultation: the later of this ...
  int consult_steps = 8;                 // ... and so many steps

  std::vector<std::string> problems() const;
};

// The planner that predicts: from a latency profile and the lengths of past responses it prices
// what every layout would do to the rest of the generation.
class Planner : public LayoutPlanner {
 public:
  // Throws Error if the options have problems or the profile lacks a degree.
  Planner(const LatencyProfile& profile, const DivisorChain& chain, const PlannerOptions& options);
  ~Planner() override;
  Planner(Planner&&) noexcept;

  Layout begin(const Workload& workload) override;
  Decision decide(const Snapshot& snapshot) override;
  Confirmation confirm(const Plan& plan, const Snapshot& snapshot,
                       std::span<const SequenceState> sequences) override;
  void switched(const Plan& plan, std::int64_t measured_ns) override;
  void finish(std::span<const Outcome> outcomes, std::int64_t elapsed_ns) override;
  std::int64_t step_ns(const LayoutGroup& group, const StepContent& work) const override;
  int scale() const override;
  std::string save() const override;
  void load(std::string_view bytes) override;
  void require_loadable(std::string_view bytes) const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taper
