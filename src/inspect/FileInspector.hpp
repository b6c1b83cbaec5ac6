// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace taper {

// What one file holds, for people, by its content or its name: HDF5 (a profile as such), weights
// (safetensors), JSON, lines of JSON (a metrics log as such). All of it is read and checked. Throws
// Error naming what is damaged, and for a file of another kind what that is and what to give.
std::string inspect_file(const std::filesystem::path& file);

// Of a metrics log: "12 lines, iterations 1 to 12". Throws Error naming the first broken line.
std::string inspect_metrics(const std::filesystem::path& file);

}  // namespace taper
