// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "param/Schema.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The run file of `taper train`.
void describe(param::Section& schema, RunOptions& options);

}  // namespace taper
