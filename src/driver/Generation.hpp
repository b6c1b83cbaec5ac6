// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/Model.hpp"
#include "driver/Options.hpp"
#include "engine/Engine.hpp"

namespace taper {

// Engine settings for rollouts of the given options on this model: KV blocks for what can be in
// flight, within the memory allowed. Throws Error where not even one sequence fits.
EngineOptions engine_options(const RolloutOptions& options, const ModelFiles& files,
                             const ModelParallel& parallel);

}  // namespace taper
