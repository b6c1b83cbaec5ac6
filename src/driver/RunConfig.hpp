// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "driver/Options.hpp"

namespace taper {

// The parameters that a run's run.h5 holds. Those that this version does not know are passed over,
// those that the file lacks have their defaults. Throws Error where the file cannot be read. For
// one rank.
RunOptions read_run_options(const std::filesystem::path& run_file);

}  // namespace taper
