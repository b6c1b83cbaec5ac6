// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "param/Schema.hpp"
#include "tune/TuningOptions.hpp"

namespace taper {

// The run files of `taper sft` and `taper reward-model`.
void describe(param::Section& schema, SftOptions& options);
void describe(param::Section& schema, RewardModelOptions& options);

}  // namespace taper
