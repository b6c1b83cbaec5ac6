// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "param/Schema.hpp"
#include "run/JobOptions.hpp"

namespace taper {

// The section Run.
void describe_run(param::Section& schema, JobOptions& options);

}  // namespace taper
