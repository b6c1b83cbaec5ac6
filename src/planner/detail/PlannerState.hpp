// SPDX-License-Identifier: Apache-2.0
//
// What a planner has learned, and where it stands in the present generation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/Cluster.hpp"
#include "planner/LengthModel.hpp"
#include "planner/PlanSearch.hpp"
#include "planner/Planner.hpp"
#include "planner/PromptLikeness.hpp"
#include "planner/RegretBudget.hpp"
#include "planner/Replay.hpp"
#include "planner/Scenarios.hpp"
#include "planner/StepModel.hpp"
#include "planner/SwitchCost.hpp"

namespace taper {

struct Planner::State {
  // usable: degrees, ascending, not empty, all in the profile and in the chain.
  State(const LatencyProfile& p, const DivisorChain& chain, const PlannerOptions& o,
        std::vector<int> usable);

  void observe(const Snapshot& snapshot);
  bool is_settled(const Snapshot& snapshot) const;
  std::int64_t wait_ns(const Snapshot& snapshot) const;  // until the next consultation
  void notice_refusal(const Snapshot& snapshot);
  bool fits(const LayoutShape& to, std::span<const SequenceState> sequences,
            std::span<const SequenceMove> moves) const;
  // Plans are priced on this cluster: all ranks, or a sample of very many.
  Cluster& priced(const Layout& layout) { return sample && layout.is_uniform() ? *sample : whole; }
  bool is_sample(const Cluster& cluster) const { return &cluster != &whole; }
  PlanSetting setting(Cluster& cluster);
  // Goes on with the search for plans, or begins one. Nothing if it is not done yet; else its
  // plans, on all ranks.
  std::optional<std::vector<PricedPlan>> search_on(const Snapshot& snapshot);
  int scenarios_for(int sequences) const;  // of one decision on so many sequences
  ExpandOptions expansion() const;
  // How long a rank waits for the last one at a meeting that is decided on now, in the mean.
  std::int64_t arrival_ns(const Snapshot& snapshot);
  std::int64_t mean_prompt() const { return work.prompt_tokens / std::max(1, work.sequences); }
  // The uniform layout in which the generation is expected to end first.
  const LayoutShape& first_shape();
  // See LayoutPlanner::save().
  std::string save() const;
  void load(std::string_view bytes);

  LatencyProfile profile;
  PlannerOptions options;
  std::vector<int> degrees;  // ascending
  StepModel steps;
  SwitchCost cost;
  LengthModel lengths;
  PromptLikeness likeness;
  Scenarios scenarios;
  RegretBudget budget;
  Cluster whole;
  std::optional<Cluster> sample;

  // The present generation.
  Workload work;
  std::string first_layout;
  std::vector<ReplaySwitch> made;
  // The snapshot before, for what ended since; epoch -1: none.
  struct Seen {
    // Running sequences of one replica and of one length, and the time of the replica's steps.
    struct Bucket {
      std::int64_t count, response, step_ns;
    };
    std::int64_t epoch = -1, elapsed_ns = 0, finished = 0;
    std::vector<Bucket> buckets;

    std::string save() const;
    void load(std::string_view bytes);
  };
  Seen last;
  // What the last search found stands until then, while more sequences than these are left.
  struct Settled {
    std::int64_t epoch = -1, until_ns = 0;
    int alive = 0;
  };
  Settled settled;
  // A search that goes on at the next consultation of its epoch; ranks that become leaders begin a
  // new epoch, so it needs no saving.
  struct Search {
    std::int64_t epoch;
    int alive, priced;  // sequences when it began: of all ranks, of the cluster
    PlanSearch plans;
  };
  std::optional<Search> search;
  // A decision to act after which the epoch stays the same was refused at the meeting; meetings
  // cost time, so after several refusals the next one has to wait.
  struct Switching {
    std::int64_t done = 0;  // switches
    std::int64_t acted_in_epoch = -1;
    std::int64_t refusals = 0;
    std::int64_t wait_until = 0;  // consultation
  };
  Switching switching;

 private:
  void read(std::string_view bytes);
};

}  // namespace taper
