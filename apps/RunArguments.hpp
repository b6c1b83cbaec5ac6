// SPDX-License-Identifier: Apache-2.0
//
// The arguments of commands that follow a run file and can go on from a checkpoint.
#pragma once

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "param/CommandLine.hpp"
#include "param/ParamFile.hpp"
#include "param/Schema.hpp"
#include "run/JobLife.hpp"
#include "session/StopRequest.hpp"

namespace taper {

// The run file, or none if the path is empty, with the values that override it.
inline param::ParamFile read_run_file(const std::string& path,
                                      const std::vector<std::string>& assignments) {
  param::ParamFile file = path.empty() ? param::ParamFile() : param::ParamFile::read(path);
  for (const auto& assignment : assignments) file.set(assignment);
  return file;
}

struct RunArguments {
  // What a command says of its own.
  struct HelpTexts {
    const char *set_example, *resume, *check;
  };

  std::string run_file, resume = "auto", print;
  std::vector<std::string> assignments;
  double deadline = std::numeric_limits<double>::infinity();  // which cannot be given
  bool dump_default = false, check = false;

  void declare(param::CommandLine& line, const HelpTexts& words) {
    line.positional("RUN", run_file, "run file (YAML); default: only defaults and --set");
    line.repeated(
        "set", assignments, "NAME=VALUE",
        std::string("overrides a value of the run file, e.g. \"") + words.set_example + "\"");
    line.text("resume", resume, "auto|none|DIR", words.resume);
    line.number("deadline", deadline, "T",
                "end of the job in seconds since 1970: it saves and stops before that (default: "
                "TAPER_DEADLINE)")
        .above(0);
    line.flag("dump-default", dump_default,
              "prints a complete run file with the default values and exits");
    line.text("print", print, "NAME",
              "prints the value of a parameter in this run, e.g. \"Output/Directory\", and exits "
              "(for scripts)");
    line.flag("check", check, words.check);
  }

  // --deadline, or else that of the environment, which only a run looks at: whatever is in there,
  // it does not keep one from asking for help.
  double job_deadline() const {
    return std::isinf(deadline) ? deadline_of_environment() : deadline;
  }

  JobLife::Purpose purpose() const {
    return check ? JobLife::Purpose::kCheck : JobLife::Purpose::kRun;
  }

  param::ParamFile file() const { return read_run_file(run_file, assignments); }

  // Prints what was asked for instead of a run; false if nothing was. `read` fills the schema.
  template <class Read>
  bool answered(param::Schema& schema, const Read& read) const {
    if (dump_default) {
      std::fputs(schema.defaults_yaml().c_str(), stdout);
    } else if (!print.empty()) {
      read(schema);
      std::printf("%s\n", schema.current_value(print).c_str());
    } else {
      return false;
    }
    return true;
  }
};

}  // namespace taper
