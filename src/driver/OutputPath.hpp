// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace taper {

// Throws Error where the file could not be written once the work is done: a directory of that name,
// or no permission.
void require_writable(const std::filesystem::path& file);

enum class CreateDirectory { kNo, kYes };

// Throws Error where results cannot go into the directory (`option` names it). Creates it, or only
// looks whether that is possible.
void require_output_directory(const std::string& option, const std::filesystem::path& directory,
                              CreateDirectory create);

}  // namespace taper
