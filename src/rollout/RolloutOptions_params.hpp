// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "param/Schema.hpp"
#include "rollout/RolloutOptions.hpp"

namespace taper {

// The section Rollout: how responses are generated.
void describe_rollout(param::Section& schema, RolloutOptions& options);

}  // namespace taper
