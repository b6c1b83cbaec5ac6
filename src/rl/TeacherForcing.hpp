// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/TrainPass.hpp"

namespace taper {

// A model and what it takes to run it over given tokens (teacher forcing), for log-probs or values.
struct PassContext {
  const Exec& exec;
  const ModelView& view;
  const ModelParallel& parallel;
  TrainPass& pass;
  TrainPassOptions options;
  HeadOptions head;
};

// For each sequence the log-probs of its response tokens. prompts[i] has at least one token,
// responses may be empty. Collective over the tensor-parallel group.
std::vector<std::vector<float>> response_log_probs(
    const PassContext& context, const std::vector<std::span<const std::int32_t>>& prompts,
    const std::vector<std::span<const std::int32_t>>& responses);

}  // namespace taper
