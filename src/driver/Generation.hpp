// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/Model.hpp"
#include "driver/Options.hpp"
#include "engine/Engine.hpp"
#include "rl/Rollout.hpp"

namespace taper {

// Engine settings for rollouts of the given options on this model: KV blocks for what can be in
// flight, within the memory allowed. Throws Error where not even one sequence fits.
EngineOptions engine_options(const RolloutOptions& options, const ModelFiles& files,
                             const ModelParallel& parallel);

// The model's end-of-sequence ids and these stop strings, with the bytes of all tokens where there
// are strings. Throws Error where strings need a tokenizer that the model lacks.
StopOptions stop_options(const ModelFiles& files, const std::vector<std::string>& strings);

// What was generated, as a sample without reward.
Sample as_sample(Completion&& completion);

}  // namespace taper
