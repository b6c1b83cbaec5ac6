// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "Commands.hpp"
#include "Session.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "driver/Options_params.hpp"
#include "driver/OutputLock.hpp"
#include "driver/OutputPath.hpp"
#include "driver/SaveModel.hpp"
#include "driver/SftJob.hpp"
#include "param/CommandLine.hpp"
#include "param/ParamFile.hpp"

namespace taper {

int run_sft(int argc, char** argv) {
  std::string run_file;
  std::vector<std::string> assignments;
  bool dump_default = false, check = false;
  param::CommandLine line("taper sft",
                          "Supervised fine-tuning on in-tree tasks, as a run file says.");
  line.positional("RUN", run_file, "run file (YAML or XML); without one, defaults and --set");
  line.repeated("set", assignments, "NAME=VALUE", "overrides a value, e.g. \"Training/Steps=100\"");
  line.flag("dump-default", dump_default,
            "prints a complete run file with the default values and exits");
  line.flag(
      "check", check,
      "validates input, files and memory, prints the memory plan and exits; leaves nothing behind");
  if (line.parse(argc, argv) == param::CommandLine::Next::kShowHelp) {
    std::fputs(line.help().c_str(), stdout);
    return 0;
  }
  SftOptions options;
  param::Schema schema;
  describe(schema, options);
  if (dump_default) {
    std::fputs(schema.defaults_yaml().c_str(), stdout);
    return 0;
  }
  Session session(argc, argv);
  param::ParamFile file = run_file.empty() ? param::ParamFile() : param::ParamFile::read(run_file);
  for (const auto& assignment : assignments) file.set(assignment);
  schema.read(file);
  require_divisible(session.size(), {{"Training/Tensor Parallel", options.training.tp}});
  require_model_target("Output/Directory", options.output);
  if (session.rank() == 0) require_output_directory("Output/Directory", options.output);
  Ranks& ranks = session.start({options.training.tp}, options.hang_seconds, ".");
  require_equal(ranks, "the configuration", schema.current_yaml());
  const std::string what = "Output/Directory " + path_text(options.output);
  OutputLock::require_free(ranks, what, OutputLock::of_model(options.output));
  SftJob job(options, ranks);
  TAPER_INFO("memory of rank 0\n" << job.memory_plan().table());
  job.examine();
  if (!check) {
    const OutputLock lock(ranks, what, OutputLock::of_model(options.output));
    job.run();
    return 0;
  }
  TAPER_INFO("input is valid; would start from "
             << (options.from_scratch ? "random weights" : path_text(options.model.directory)));
  return 0;
}

}  // namespace taper
