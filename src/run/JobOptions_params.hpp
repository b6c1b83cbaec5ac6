// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "param/Schema.hpp"

namespace taper {

// The section Run, which stays open for what else a command says of the job.
param::Section describe_run(param::Section& schema, std::uint64_t& seed, double& hang_seconds);
void describe_deadline(param::Section& run, double& margin);

}  // namespace taper
