// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <string>

#include "Commands.hpp"
#include "base/Error.hpp"
#include "base/Printable.hpp"
#include "driver/Inspector.hpp"
#include "driver/RolloutText.hpp"
#include "param/CommandLine.hpp"

namespace taper {
namespace {

// Files get the text as it is; a terminal would obey control characters in it.
void print(const std::string& text) {
  std::fputs((::isatty(STDOUT_FILENO) != 0 ? printable(text) : text).c_str(), stdout);
}

}  // namespace

int run_inspect(int argc, char** argv) {
  std::string path, repair, model;
  int text = 0;
  param::CommandLine line(
      "taper inspect",
      "Prints an HDF5 file, a run, a checkpoint or a model directory, and checks it.");
  line.positional("PATH", path, "file or directory");
  line.text("repair", repair, "RUN_DIR", "writes run.h5 of a run anew from its metrics.jsonl");
  line.integer(
          "text", text, "N",
          "prints the first N samples of a rollout file, or of the newest one of a run, as text")
      .at_least(1);
  line.text("model", model, "DIR", "whose tokenizer reads them; default: the model of the run");
  if (line.parse(argc, argv) == param::CommandLine::Next::kShowHelp) {
    std::fputs(line.help().c_str(), stdout);
    return 0;
  }
  TAPER_VALIDATE(path.empty() != repair.empty(),
                 "taper inspect: give either PATH or --repair RUN_DIR");
  TAPER_VALIDATE(text > 0 ? repair.empty() : model.empty(),
                 "taper inspect: --text goes with PATH, and --model with --text");
  if (text > 0) {
    print(rollout_text(path, text, model));
    return 0;
  }
  print(repair.empty() ? inspect(path) : repair_run(repair));
  return 0;
}

}  // namespace taper
