// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/RolloutOptions.hpp"
#include "param/Schema.hpp"

namespace taper {

// The section Rollout: how responses are generated.
void describe_rollout(param::Section& schema, RolloutOptions& options);

}  // namespace taper
