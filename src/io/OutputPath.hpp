// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace taper {

// Throws Error if the file could not be written once the work is done: a directory, device or
// pipe of that name, or no permission; or if it is one of the inputs (an empty path is none).
// Says so if its directory will have to be created, which may be a slip of the pen. Leaves nothing
// behind; creates no directory.
void require_writable(const std::filesystem::path& file,
                      const std::vector<std::filesystem::path>& inputs);

// Throws Error if results cannot go into the directory (`option` names it), which need not exist
// yet. Leaves nothing behind; creates no directory.
void require_output_directory(const std::string& option, const std::filesystem::path& directory);

}  // namespace taper
