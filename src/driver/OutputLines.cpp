// SPDX-License-Identifier: Apache-2.0
#include "driver/OutputLines.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/Error.hpp"

namespace taper {

void require_writable(const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  TAPER_VALIDATE(!fs::is_directory(file),
                 "output " << file.string() << " is a directory (a file is written); add a name");
  fs::path parent = fs::absolute(file).parent_path();
  while (!fs::exists(parent))
    parent = parent.parent_path();  // missing directories are created with the file
  TAPER_VALIDATE(fs::is_directory(parent) && ::access(parent.c_str(), W_OK | X_OK) == 0,
                 "output " << file.string() << " cannot be written (" << parent.string()
                           << " is no directory, or without permission)");
}

void require_output_directory(const std::string& option, const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(directory, error);
  if (!error && !fs::is_directory(directory))
    error = std::make_error_code(std::errc::not_a_directory);
  TAPER_VALIDATE(!error, option << " " << directory.string() << " cannot be created ("
                                << error.message() << "); choose another one");
  TAPER_VALIDATE(::access(directory.c_str(), W_OK | X_OK) == 0,
                 option << " " << directory.string()
                        << " cannot be written (no permission); choose another one");
}

std::string shortest_number(float value) {
  TAPER_VALIDATE(std::isfinite(value),
                 "a log-prob is " << value << " (are all weights of the model finite?)");
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

}  // namespace taper
