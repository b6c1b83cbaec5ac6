// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "Commands.hpp"
#include "base/Error.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// Beside an installed executable (PREFIX/bin, PREFIX/share/taper/tools), else in the source tree it
// was built from.
fs::path find_script() {
  std::error_code none;
  const fs::path executable = fs::read_symlink("/proc/self/exe", none);
  const fs::path installed =
      executable.parent_path().parent_path() / "share/taper/tools/taper_report.py";
  const fs::path source = fs::path(TAPER_SOURCE_TOOLS) / "taper_report.py";
  for (const fs::path& script : {installed, source})
    if (fs::exists(script)) return script;
  TAPER_FAIL(ExitCode::kFailure, "taper_report.py is missing (neither "
                                     << installed.string() << " nor " << source.string()
                                     << "); reinstall Taper");
}

}  // namespace

int run_report(int argc, char** argv) {
  std::string script = find_script().string();
  const char* named = std::getenv("TAPER_PYTHON");
  std::string python = named != nullptr && *named != '\0' ? named : "python3";
  std::vector<char*> words{python.data(), script.data()};
  for (int i = 1; i < argc; ++i) words.push_back(argv[i]);
  words.push_back(nullptr);
  ::execvp(words[0], words.data());  // comes back only if it failed
  TAPER_FAIL(
      ExitCode::kFailure,
      "cannot start "
          << python << " (" << std::strerror(errno)
          << "); taper report needs Python with h5py, numpy and matplotlib: set TAPER_PYTHON to "
             "it, in the source tree by eval \"$(cmake/deps/install.sh --python)\"");
}

}  // namespace taper
