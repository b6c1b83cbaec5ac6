// SPDX-License-Identifier: Apache-2.0
#include "base/Path.hpp"

#include <algorithm>
#include <system_error>

namespace taper {

std::string path_text(const std::filesystem::path& path) {
  const std::string text = path.string();
  return text.empty() || text.find_first_of(" \t\n") != std::string::npos ? "'" + text + "'" : text;
}

std::string line_text(const std::filesystem::path& file, std::int64_t line) {
  return path_text(file) + ":" + std::to_string(line);
}

std::string path_advice(const std::filesystem::path& path) {
  std::error_code error;
  const auto here = std::filesystem::current_path(error);
  if (path.is_absolute() || error) return "check the path";
  return "check the path (relative ones count from the working directory, " + path_text(here) + ")";
}

std::filesystem::path without_end_slash(const std::filesystem::path& path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

std::filesystem::path place_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  const auto place = std::filesystem::weakly_canonical(whole, error);
  return without_end_slash(error ? whole.lexically_normal() : place);
}

bool is_within(const std::filesystem::path& path, const std::filesystem::path& directory) {
  const auto place = place_of(path), top = place_of(directory);
  return std::mismatch(top.begin(), top.end(), place.begin(), place.end()).first == top.end();
}

}  // namespace taper
