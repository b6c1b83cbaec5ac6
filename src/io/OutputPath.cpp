// SPDX-License-Identifier: Apache-2.0
#include "io/OutputPath.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"

namespace taper {

namespace {

namespace fs = std::filesystem;

// Itself, or the directory in which it would be created.
fs::path existing_part(const fs::path& path) {
  std::error_code ignored;
  fs::path part = fs::absolute(path);
  while (!fs::exists(part, ignored) && part.has_relative_path()) part = part.parent_path();
  return part;
}

std::string reason(int error) {
  return std::generic_category().message(error);
}

// Why nothing can be put into a directory, which need not exist yet; empty if it can. Permission
// bits do not tell (of root, or below /proc): it is tried, and nothing is left of that.
std::string writing_problem(const fs::path& directory) {
  if (::access(directory.c_str(), F_OK) != 0 && errno != ENOENT) return reason(errno);
  const fs::path place = existing_part(directory);
  std::error_code ignored;
  if (!fs::is_directory(place, ignored)) return path_text(place) + " is not a directory";
  // A name of its own: several jobs may try at the same time.
  std::string trial = (place / ".taper-XXXXXX").string();
  if (::mkdtemp(trial.data()) == nullptr) {
    if (errno == ENOSPC || errno == EDQUOT) return "";  // may change; who writes will tell
    return "nothing can be created in " + path_text(place) + ": " + reason(errno);
  }
  ::rmdir(trial.c_str());
  return "";
}

}  // namespace

void require_writable(const std::filesystem::path& file,
                      const std::vector<std::filesystem::path>& inputs) {
  std::error_code ignored;
  const fs::file_type type = fs::status(file, ignored).type();
  TAPER_VALIDATE(
      type != fs::file_type::directory,
      "output " << path_text(file) << " is a directory (a file is expected); add a file name");
  TAPER_VALIDATE(type == fs::file_type::regular || type == fs::file_type::not_found ||
                     type == fs::file_type::none,
                 "output " << path_text(file)
                           << " is a device or pipe (results are written under another name and "
                              "renamed); name a file");
  for (const fs::path& input : inputs)
    TAPER_VALIDATE(input.empty() || place_of(input) != place_of(file),
                   "output " << path_text(file) << " is the input " << path_text(input)
                             << " (the results would replace it); name another file");
  const std::string problem = writing_problem(fs::absolute(file).parent_path());
  TAPER_VALIDATE(problem.empty(), "output " << path_text(file) << " cannot be written (" << problem
                                            << "); name another one");
  const fs::path directory = fs::absolute(file).parent_path();
  if (!fs::exists(directory, ignored))
    TAPER_INFO(path_text(directory)
               << " does not exist yet and will be created for " << path_text(file.filename()));
}

void require_output_directory(const std::string& option, const std::filesystem::path& directory) {
  const std::string problem = writing_problem(directory);
  TAPER_VALIDATE(problem.empty(), option << " is " << path_text(directory)
                                         << ", which cannot be written (" << problem
                                         << "); choose another one");
}

}  // namespace taper
