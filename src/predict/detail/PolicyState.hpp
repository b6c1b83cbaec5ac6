// SPDX-License-Identifier: Apache-2.0
//
// What a policy has learned, and where it stands in the present generation.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "predict/LengthModel.hpp"
#include "predict/PlanSearch.hpp"
#include "predict/Policy.hpp"
#include "predict/RegretBudget.hpp"
#include "predict/Replay.hpp"
#include "predict/Scenarios.hpp"
#include "predict/StepModel.hpp"
#include "predict/SwitchCost.hpp"

namespace taper {

struct Policy::State {
  State(const LatencyProfile& p, const DivisorChain& c, const PolicyOptions& o)
      : profile(p),
        chain(c),
        options(o),
        steps(profile),
        cost(profile),
        lengths(o.half_life),
        scenarios(o.seed, o.scenarios),
        budget(o.budget_ppm, o.fallback_ppm) {}

  // Stable addresses: runs refer to shapes.
  const LayoutShape& shape(const Layout& layout) {
    for (const LayoutShape& s : shapes)
      if (s.layout == layout) return s;
    return shapes.emplace_back(resolve(layout, steps));
  }

  void observe(const Snapshot& snapshot);
  bool is_settled(const Snapshot& snapshot) const;
  std::int64_t wait_ns(const Snapshot& snapshot) const;  // until the next consultation
  void notice_refusal(const Snapshot& snapshot);
  bool fits(const LayoutShape& to, std::span<const SequenceState> sequences,
            std::span<const SequenceMove> moves) const;
  PlanSetting setting() {
    return {uniform,
            chain,
            degrees,
            steps,
            cost,
            lengths,
            scenarios,
            [this](const Layout& layout) -> const LayoutShape& { return shape(layout); },
            work.slots_per_rank,
            options.look_ahead,
            options.mixed_groups,
            options.repack};
  }
  int scenarios_for(int sequences) const;  // of one decision on so many sequences
  std::int64_t mean_prompt() const { return work.prompt_tokens / std::max(1, work.sequences); }
  std::int64_t expected_ns(const LayoutShape& shape);
  std::vector<std::int64_t> save() const;
  void load(std::span<const std::int64_t> words);

  LatencyProfile profile;
  DivisorChain chain;
  PolicyOptions options;
  std::vector<int> degrees;  // ascending
  StepModel steps;
  SwitchCost cost;
  LengthModel lengths;
  Scenarios scenarios;
  RegretBudget budget;
  std::deque<LayoutShape> shapes;
  std::vector<const LayoutShape*> uniform;  // by degree

  // The present generation.
  Workload work;
  std::string first_layout;
  int switches = 0;
  std::vector<ReplaySwitch> made;
  // The snapshot before, for what ended since.
  std::vector<std::int64_t> last;  // see observe()
  // What the last search found stands until then, while more sequences than these are left.
  struct Settled {
    std::int64_t epoch = -1, until_ns = 0;
    int alive = 0;
  };
  Settled settled;
  // A search that goes on at the next consultation, of that epoch; ranks that become leaders begin
  // a new epoch, so it needs no saving.
  std::optional<PlanSearch> search;
  std::int64_t search_epoch = -1;
  // A decision to act after which the epoch stays the same was refused at the meeting; meetings
  // cost time, so after several refusals the next one has to wait.
  std::int64_t acted_in_epoch = -1;
  std::int64_t refusals = 0, wait_until = 0;
};

}  // namespace taper
