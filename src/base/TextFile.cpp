// SPDX-License-Identifier: Apache-2.0
#include "base/TextFile.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/Error.hpp"

namespace taper {

std::string read_text_file(const std::filesystem::path& path) {
  TAPER_VALIDATE(!std::filesystem::is_directory(path), path.string()
                                                           << " cannot be read (it is a folder)");
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  TAPER_VALIDATE(stream, path.string() << " cannot be opened (" << std::strerror(errno) << ")");
  std::ostringstream text;
  text << stream.rdbuf();
  TAPER_VALIDATE(!stream.bad() && !text.bad(), path.string() << " cannot be read to its end");
  return text.str();
}

}  // namespace taper
