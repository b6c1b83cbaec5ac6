// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/TrainPass.hpp"

namespace taper {

// Teacher-forced log-probs of given tokens by one model.
struct ScoreContext {
  const HostExec& exec;
  const ModelView& view;
  const ModelParallel& parallel;
  TrainPass& pass;
  TrainPassOptions options;
  HeadOptions head;
};

// For each sequence the log-probs of its response tokens. prompts[i] has at least one token,
// responses may be empty. Collective over the tensor-parallel group.
std::vector<std::vector<float>> score_responses(
    const ScoreContext& context, const std::vector<std::span<const std::int32_t>>& prompts,
    const std::vector<std::span<const std::int32_t>>& responses);

}  // namespace taper
