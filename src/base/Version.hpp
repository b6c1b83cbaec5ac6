// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace taper {

// What was built, for result files and --version.
struct BuildInfo {
  std::string version;   // project version, e.g. "0.1.0"
  std::string git_hash;  // "unknown" outside a checkout
  std::string compiler;
  std::string build_type;
};

BuildInfo build_info();

}  // namespace taper
