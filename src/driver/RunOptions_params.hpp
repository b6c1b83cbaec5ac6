// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/RunOptions.hpp"
#include "param/Schema.hpp"

namespace taper {

// The run file of `taper train`.
void describe(param::Section& schema, RunOptions& options);

}  // namespace taper
