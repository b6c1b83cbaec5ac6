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

  // `scale`: of the planner that chose the layouts, above 0.
  GenerationReview review(const GenerationReport& report, const Workload& work,
                          const std::vector<Outcome>& outcomes, std::int64_t scale);

 private:
  SimulatedMachine machine_;
  const DivisorChain& chain_;
  std::vector<int> degrees_;
  std::int64_t consult_ns_;
};

}  // namespace taper
