// SPDX-License-Identifier: Apache-2.0
#include "driver/OutputPath.hpp"

#include <unistd.h>

#include <system_error>

#include "base/Error.hpp"

namespace taper {

namespace {

namespace fs = std::filesystem;

// Itself, or the directory in which it would be created.
fs::path existing_part(const fs::path& path) {
  fs::path part = fs::absolute(path);
  while (!fs::exists(part) && part.has_relative_path()) part = part.parent_path();
  return part;
}

}  // namespace

void require_writable(const std::filesystem::path& file) {
  TAPER_VALIDATE(!fs::is_directory(file),
                 "output " << file.string() << " is a directory (a file is written); add a name");
  // Missing directories are created with the file.
  const fs::path parent = existing_part(fs::absolute(file).parent_path());
  TAPER_VALIDATE(fs::is_directory(parent) && ::access(parent.c_str(), W_OK | X_OK) == 0,
                 "output " << file.string() << " cannot be written (" << parent.string()
                           << " is no directory, or without permission)");
}

void require_output_directory(const std::string& option, const std::filesystem::path& directory,
                              CreateDirectory create) {
  std::error_code error;
  if (create == CreateDirectory::kYes) fs::create_directories(directory, error);
  const fs::path place = existing_part(directory);
  if (!error && !fs::is_directory(place)) error = std::make_error_code(std::errc::not_a_directory);
  TAPER_VALIDATE(!error, option << " " << directory.string() << " cannot be created ("
                                << error.message() << "); choose another one");
  TAPER_VALIDATE(::access(place.c_str(), W_OK | X_OK) == 0,
                 option << " " << directory.string()
                        << " cannot be written (no permission); choose another one");
}

}  // namespace taper
