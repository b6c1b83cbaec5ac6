// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

namespace taper {

// Whether execvp() would find a program that can be run: the file itself if its name has a
// slash, else one of that name in the folders of `search_path`, as the variable PATH lists them
// (null: not set). Starts nothing.
bool can_be_run(const std::string& program, const char* search_path = std::getenv("PATH"));

}  // namespace taper
