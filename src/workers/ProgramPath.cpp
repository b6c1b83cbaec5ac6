// SPDX-License-Identifier: Apache-2.0
#include "workers/ProgramPath.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace taper {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path, ignored);
}

}  // namespace

bool can_be_run(const std::string& program, const char* search_path) {
  if (program.find('/') != std::string::npos) return is_program(program);
  const std::string folders = search_path == nullptr ? "/bin:/usr/bin" : search_path;
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    if (is_program(fs::path(folder.empty() ? "." : folder) / program)) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace taper
