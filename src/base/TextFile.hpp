// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace taper {

// The text of a whole file. Throws Error(kBadInput) naming it where it cannot be read.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace taper
