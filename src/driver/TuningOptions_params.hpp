// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/TuningOptions.hpp"
#include "param/Schema.hpp"

namespace taper {

// The run files of `taper sft` and `taper reward-model`.
void describe(param::Section& schema, SftOptions& options);
void describe(param::Section& schema, RewardModelOptions& options);

}  // namespace taper
