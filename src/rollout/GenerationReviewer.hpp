// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "planner/LayoutPlanner.hpp"
#include "planner/Planner.hpp"
#include "rollout/GenerationReport.hpp"

namespace taper {

// Accounts for generations that took place: by their true lengths, on the machine as it was
// profiled.
class GenerationReviewer {
 public:
  // The chain must outlive the reviewer.
  GenerationReviewer(const LatencyProfile& profile, const DivisorChain& chain,
                     const PlannerOptions& options)
      : machine_(profile),
        chain_(chain),
        degrees_(options.degrees),
        consult_ns_(options.consult_ns) {}

  // `scale`: what the planner has learned of the machine, above 0, which counts until generations
  // have been reviewed.
  GenerationReview review(const GenerationReport& report, const Workload& work,
                          const std::vector<Outcome>& outcomes, std::int64_t scale);

 private:
  SimulatedMachine machine_;
  const DivisorChain& chain_;
  std::vector<int> degrees_;
  std::int64_t consult_ns_;
  // Time of the generations so far by what their replays took, a moving average in 1/kRatioOne; 0:
  // none was reviewed. Not the planner's: that has factors besides, which a replay has not.
  std::int64_t scale_ = 0;
};

}  // namespace taper
