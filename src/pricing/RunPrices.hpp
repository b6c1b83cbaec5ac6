// SPDX-License-Identifier: Apache-2.0
//
// The prices of a run's iteration in all placements of its models, from its run file and profiles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "instance/ModelFiles.hpp"
#include "placement/PlacementCosts.hpp"
#include "planner/LatencyProfile.hpp"
#include "planner/Replay.hpp"
#include "shard/RankGrid.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The generations of a run whose lengths are prescribed (Rollout/Lengths, a law), or, without a
// name, of a run with log-normal lengths: prompts as the run reads them, `iterations` of them.
std::vector<ReplayTrace> expected_generations(const RunOptions& run, const ModelFiles& policy,
                                              int iterations);

// The one that is of a model with the shape of the run's policy. Throws Error if there is none.
const LatencyProfile& profile_of_policy(const RunOptions& run,
                                        const std::vector<LatencyProfile>& profiles);

// What an iteration of the run costs wherever its models are on the ranks of the chain: passes and
// steps by the profiles, each for the models of its shape; generation as the planner plays the last
// of the traces, having learned from the others; publishing by the bytes that move. Samples of a
// prompt follow one another in a trace. Throws Error naming a model without a profile, or a profile
// without passes. On one rank.
PlacementCosts price_run(const RunOptions& run, const DivisorChain& chain,
                         const std::vector<LatencyProfile>& profiles,
                         const std::vector<ReplayTrace>& traces);

}  // namespace taper
