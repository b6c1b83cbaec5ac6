// SPDX-License-Identifier: Apache-2.0
#include "base/Error.hpp"

namespace taper::detail {

void throw_broken_contract(const char* kind, const char* condition, const char* file, int line) {
  TAPER_FAIL(ExitCode::kFailure, kind << " failed: " << condition << " at " << file << ":" << line
                                      << " (a bug in Taper; please report it)");
}

}  // namespace taper::detail
