// SPDX-License-Identifier: Apache-2.0
//
// Files and directories that options name, looked at before any work.
#pragma once

#include <filesystem>
#include <string>

namespace taper {

// Each throws Error naming `option` (a key of a run file, or an option of a command) and the path
// if there is nothing of that kind. Relative paths count from the working directory, which the
// message tells. `advice` stands at its end.
void require_input_file(const std::string& option, const std::filesystem::path& path,
                        const std::string& advice = "");
// A file or a directory.
void require_input_path(const std::string& option, const std::filesystem::path& path);
// A Hugging Face directory: one with a config.json.
void require_model_directory(const std::string& option, const std::filesystem::path& path);

}  // namespace taper
