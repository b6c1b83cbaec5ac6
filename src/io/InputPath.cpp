// SPDX-License-Identifier: Apache-2.0
#include "io/InputPath.hpp"

#include <system_error>

#include "base/Error.hpp"
#include "base/Path.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// What is there. Throws Error if that cannot be known or is nothing.
fs::file_type require_something(const std::string& option, const fs::path& path, const char* kind,
                                const std::string& advice) {
  TAPER_VALIDATE(!path.empty(), option << " is not set (" << kind << " is expected)");
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  const bool missing = type == fs::file_type::not_found;
  TAPER_VALIDATE(!missing && type != fs::file_type::none,
                 option << " is " << path_text(path) << " ("
                        << (missing ? "no such file or directory" : error.message()) << "); "
                        << path_advice(path) << (advice.empty() ? "" : ", or " + advice));
  return type;
}

}  // namespace

void require_input_file(const std::string& option, const fs::path& path,
                        const std::string& advice) {
  const fs::file_type type = require_something(option, path, "a file", advice);
  TAPER_VALIDATE(type != fs::file_type::directory,
                 option << " is " << path_text(path) << " (a directory); name a file");
}

void require_input_path(const std::string& option, const fs::path& path) {
  require_something(option, path, "a file or directory", "");
}

void require_model_directory(const std::string& option, const fs::path& path) {
  constexpr const char* kKind = "a Hugging Face directory";
  const fs::file_type type = require_something(option, path, kKind, "");
  TAPER_VALIDATE(type == fs::file_type::directory,
                 option << " is " << path_text(path) << " (a file); name the directory it is in");
  std::error_code ignored;
  TAPER_VALIDATE(fs::exists(path / "config.json", ignored),
                 option << " is " << path_text(path) << " (no config.json in it; " << kKind
                        << " is expected); " << path_advice(path));
}

}  // namespace taper
