// SPDX-License-Identifier: Apache-2.0
//
// Paths: in messages, and of directories.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace taper {

// As it stands in a message: in single quotes if it has blanks or is empty, so that one sees
// where it begins and ends.
std::string path_text(const std::filesystem::path& path);

// "FILE:LINE", for what is wrong in a line of text.
std::string line_text(const std::filesystem::path& file, std::int64_t line);

// What to do if a path is not there: "check the path", for a relative one with the directory
// that it counts from.
std::string path_advice(const std::filesystem::path& path);

// The same path without a slash at its end: "runs/a" of "runs/a/", so that names beside the
// directory can be made of it.
std::filesystem::path without_end_slash(const std::filesystem::path& path);

// A name by which two paths to one place are equal, be it by a link, "..", or a slash at the end.
// What cannot be looked at keeps the links in its name.
std::filesystem::path place_of(const std::filesystem::path& path);

// Whether a path is that directory or lies in it; neither need exist.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& directory);

}  // namespace taper
