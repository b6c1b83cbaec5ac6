// SPDX-License-Identifier: Apache-2.0
#include "base/TextFile.hpp"

#include <cerrno>
#include <sstream>
#include <system_error>

#include "base/Error.hpp"
#include "base/Path.hpp"

namespace taper {

namespace fs = std::filesystem;

std::ifstream open_text_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  TAPER_VALIDATE(status.type() != fs::file_type::not_found,
                 path_text(path) << " cannot be read (no such file); " << path_advice(path));
  TAPER_VALIDATE(!fs::is_directory(status),
                 path_text(path) << " cannot be read (it is a directory); name a file");
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  TAPER_VALIDATE(stream, path_text(path)
                             << " cannot be read (" << std::generic_category().message(errno)
                             << "); check the permissions");
  return stream;
}

std::string read_text_file(const fs::path& path) {
  std::ifstream stream = open_text_file(path);
  std::ostringstream text;
  text << stream.rdbuf();
  TAPER_VALIDATE(!stream.bad() && !text.bad(), path_text(path) << " cannot be read to its end");
  return text.str();
}

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace taper
