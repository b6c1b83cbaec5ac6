// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "Commands.hpp"
#include "base/Error.hpp"
#include "driver/Inspector.hpp"
#include "param/CommandLine.hpp"

namespace taper {

int run_inspect(int argc, char** argv) {
  std::string path, repair;
  param::CommandLine line(
      "taper inspect",
      "Prints an HDF5 file, a run, a checkpoint or a model directory, and checks it.");
  line.positional("PATH", path, "file or directory");
  line.text("repair", repair, "RUN_DIR", "writes run.h5 of a run anew from its metrics.jsonl");
  if (line.parse(argc, argv) == param::CommandLine::Next::kShowHelp) {
    std::fputs(line.help().c_str(), stdout);
    return 0;
  }
  TAPER_VALIDATE(path.empty() != repair.empty(),
                 "taper inspect: give either PATH or --repair RUN_DIR");
  std::fputs((repair.empty() ? inspect(path) : repair_run(repair)).c_str(), stdout);
  return 0;
}

}  // namespace taper
