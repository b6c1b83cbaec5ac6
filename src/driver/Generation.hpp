// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "driver/Model.hpp"
#include "driver/Options.hpp"
#include "engine/Engine.hpp"

namespace taper {

// Engine settings for rollouts of the given options on this model: KV blocks for what can be in
// flight, within the memory allowed. Throws Error where not even one sequence fits.
EngineOptions engine_options(const RolloutOptions& options, const ModelFiles& files,
                             const ModelParallel& parallel);

// Generates the responses to this replica's share of the requests (request i belongs to replica i
// mod replicas). Collective over the replica's group; replicas do not wait for each other.
//
// `stop`, asked every few steps by all ranks of the group together, must give them one answer;
// where it is true what was generated so far is dropped and nothing returned.
std::vector<Completion> generate(Engine& engine, const std::vector<Request>& requests, int replica,
                                 int replicas, const SamplingOptions& sampling,
                                 const StopOptions& stops, Progress& progress,
                                 const std::function<bool()>& stop = {});

}  // namespace taper
