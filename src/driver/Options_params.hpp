// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/Options.hpp"
#include "param/Schema.hpp"

namespace taper {

// Describes the run file of `taper train`, `taper sft`, `taper reward-model`.
void describe(param::Section& schema, RunOptions& options);
void describe(param::Section& schema, SftOptions& options);
void describe(param::Section& schema, RewardModelOptions& options);

}  // namespace taper
