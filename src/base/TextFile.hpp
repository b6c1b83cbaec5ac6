// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace taper {

// A file opened for reading, byte for byte. Throws Error(kBadInput) naming it and the reason if
// it is missing, a directory or not to be read.
std::ifstream open_text_file(const std::filesystem::path& path);

// The text of a whole file. Throws Error(kBadInput) naming it if it cannot be read to its end.
std::string read_text_file(const std::filesystem::path& path);

// The first line of a file, without its end; empty if there is none or it cannot be read. For
// what the system tells in files (/proc, /sys) that not every machine has.
std::string first_line(const std::filesystem::path& path);

}  // namespace taper
