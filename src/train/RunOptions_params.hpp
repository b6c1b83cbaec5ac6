// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "param/Schema.hpp"
#include "train/Preset.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The run file of `taper train`.
void describe(param::Section& schema, RunOptions& options);

// Fills the options of which `schema` is the description from a run file and the preset that it
// names. Throws Error with all problems of the file.
AppliedPreset read_run(param::Schema& schema, param::ParamFile file);

}  // namespace taper
