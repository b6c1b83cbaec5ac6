// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "Commands.hpp"
#include "Session.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "driver/Options_params.hpp"
#include "driver/OutputLock.hpp"
#include "driver/OutputPath.hpp"
#include "driver/ResumePoint.hpp"
#include "driver/SaveModel.hpp"
#include "driver/SftJob.hpp"
#include "driver/StopRequest.hpp"
#include "param/CommandLine.hpp"
#include "param/ParamFile.hpp"

namespace taper {
namespace {

struct SftArguments {
  std::string run_file, resume = "auto";
  std::vector<std::string> assignments;
  double deadline = deadline_of_environment();
  bool dump_default = false, check = false;

  void declare(param::CommandLine& line) {
    line.positional("RUN", run_file, "run file (YAML or XML); without one, defaults and --set");
    line.repeated("set", assignments, "NAME=VALUE",
                  "overrides a value, e.g. \"Training/Steps=100\"");
    line.text("resume", resume, "auto|none|DIR",
              "go on from the newest checkpoint, start afresh, or use this checkpoint");
    line.number("deadline", deadline, "T",
                "seconds since 1970 at which the job is over: it saves and stops before that "
                "(default: TAPER_DEADLINE)")
        .above(0);
    line.flag("dump-default", dump_default,
              "prints a complete run file with the default values and exits");
    line.flag("check", check,
              "validates input, files and memory, prints the memory plan and exits; leaves nothing "
              "behind");
  }

  void read(param::Schema& schema) const {
    param::ParamFile file =
        run_file.empty() ? param::ParamFile() : param::ParamFile::read(run_file);
    for (const auto& assignment : assignments) file.set(assignment);
    schema.read(file);
  }
};

// What a run with that start would begin with.
std::string outlook(const RunStart& start, const SftOptions& options) {
  if (!start.is_afresh())
    return "would go on after step " + std::to_string(start.state.iteration) + " (checkpoint " +
           path_text(start.checkpoint) + ")";
  return "would start from " +
         (options.from_scratch ? "random weights" : path_text(options.model.directory));
}

int sft(Session& session, const SftOptions& options, const std::string& config,
        const SftArguments& arguments, const StopRequest& stop) {
  Ranks& ranks = session.start({options.training.tp}, options.hang_seconds, ".");
  require_equal(ranks, "the configuration", config);
  const std::string what = "Output/Directory " + path_text(options.output);
  OutputLock::require_free(ranks, what, OutputLock::of_model(options.output));
  SftJob job(options, ranks);
  TAPER_INFO("memory of rank 0\n" << job.memory_plan().table());
  const auto find = [&] { return find_resume_point(ranks, arguments.resume, options.run_path()); };
  const RunStart start =
      job.examine(find(), arguments.check ? CheckpointCheck::kContents : CheckpointCheck::kHead);
  if (arguments.check) {
    TAPER_INFO("input is valid; " << outlook(start, options));
    return session.finish(ExitCode::kDone);
  }
  const OutputLock lock(ranks, what, OutputLock::of_model(options.output));
  // What is there is looked at again now that this job has it for itself.
  return session.finish(job.run({config, &stop, find()}));
}

}  // namespace

int run_sft(int argc, char** argv) {
  SftArguments arguments;
  param::CommandLine line("taper sft",
                          "Supervised fine-tuning on files of examples, or on in-tree tasks, as a "
                          "run file says.");
  arguments.declare(line);
  if (line.parse(argc, argv) == param::CommandLine::Next::kShowHelp) {
    std::fputs(line.help().c_str(), stdout);
    return 0;
  }
  SftOptions options;
  param::Schema schema;
  describe(schema, options);
  if (arguments.dump_default) {
    std::fputs(schema.defaults_yaml().c_str(), stdout);
    return 0;
  }
  StopRequest stop;  // before threads start
  Session session(argc, argv);
  arguments.read(schema);
  require_divisible(session.size(), {{"Training/Tensor Parallel", options.training.tp}});
  require_model_target("Output/Directory", options.output);
  if (session.rank() == 0) {
    require_output_directory("Output/Directory", options.output);
    require_output_directory("Output/Run Directory", options.run_path());
    require_run_places(options.run_path());
  }
  stop.set_deadline(arguments.deadline - options.deadline_margin);
  return sft(session, options, schema.current_yaml(), arguments, stop);
}

}  // namespace taper
