// SPDX-License-Identifier: Apache-2.0
#include "Commands.hpp"
#include "base/Error.hpp"
namespace taper {
int run_generate(int, char**) { TAPER_FAIL(ExitCode::kFailure, "not built yet"); }
}  // namespace taper
