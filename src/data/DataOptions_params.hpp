// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/DataOptions.hpp"
#include "param/Schema.hpp"

namespace taper {

// The section Data: prompts of reinforcement learning, examples of fine-tuning, preference pairs.
// Each may get more parameters from the command.
void describe_data(param::Section& schema, DataOptions& options);
void describe_sft_data(param::Section& schema, SftDataOptions& options);
void describe_preference_data(param::Section& schema, PreferenceDataOptions& options);

}  // namespace taper
