// SPDX-License-Identifier: Apache-2.0
#include "train/RunDegrees.hpp"

#include "reward/RewardModel.hpp"
#include "rollout/RolloutLayouts.hpp"
#include "session/LayoutChecks.hpp"
#include "train/PlacementFile.hpp"

namespace taper {

std::vector<int> degrees_of(const RunOptions& options, int ranks) {
  const PlacementOptions& placement = options.placement;
  if (placement.strategy == PlacementStrategy::kPlan)
    require_placement_ranks(placement.file, read_placement_file(placement.file), ranks);
  if (placement.generation.empty() && placement.strategy != PlacementStrategy::kSeparation)
    require_layout("Rollout/Layout", options.rollout.layout, ranks);
  const int critic_tp = options.critic_in_use().tp;  // that of the training without a critic
  NamedDegrees degrees = degrees_of_models(options.judged_by());
  degrees.insert(degrees.end(), {{"Rollout/Tensor Parallel", options.rollout.tp},
                                 {"Training/Tensor Parallel", options.training.tp},
                                 {"Critic/Tensor Parallel", critic_tp}});
  for (const auto& named : named_degrees(placement, options.models(), ranks))
    degrees.push_back(named);
  for (const int degree : degrees_of_layout("Rollout/Layout", options.rollout.layout))
    degrees.push_back({"Rollout/Layout", degree});
  return require_divisible(ranks, degrees);
}

}  // namespace taper
