// SPDX-License-Identifier: Apache-2.0
#include "driver/OutputLines.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>

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

std::string shortest_number(float value) {
  TAPER_VALIDATE(std::isfinite(value),
                 "a log-prob is " << value << " (are all weights of the model finite?)");
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

}  // namespace taper
