// SPDX-License-Identifier: Apache-2.0
//
// The commands that fine-tune a model on examples: all but what is learned is alike.
#pragma once

#include <cstdio>
#include <exception>
#include <filesystem>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "RunArguments.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "checkpoint/SaveModel.hpp"
#include "io/OutputPath.hpp"
#include "run/OutputLock.hpp"
#include "run/ResumePoint.hpp"
#include "run/StatusFile.hpp"
#include "session/Session.hpp"
#include "session/StopRequest.hpp"
#include "tune/TuningJob.hpp"
#include "tune/TuningOptions_params.hpp"

namespace taper {

inline constexpr RunArguments::Words kTuningWords{
    "Training/Steps=100", "go on from the newest checkpoint, start afresh, or use this checkpoint",
    "validates input, files and memory, prints the memory plan and exits; leaves nothing behind"};

// What a run with that start would begin with; afresh: the weights of one that begins anew.
inline std::string outlook(const RunStart& start, const std::string& afresh) {
  if (!start.is_afresh())
    return "would go on after step " + std::to_string(start.state.iteration) + " (checkpoint " +
           path_text(start.checkpoint) + ")";
  return "would start from " + afresh;
}

// What a command says of itself, and of its options.
template <class Options>
struct TuningCommand {
  const char* name;   // "taper sft"
  const char* about;  // a sentence
  // The weights that a run begins with, in words.
  std::string (*start)(const Options&);
};

// The lock files of a job by the outputs that they are for. The run directory has one as that of
// taper train has: where a user names it, another job with another model may write there, and
// taper inspect looks there.
inline std::vector<std::pair<std::string, std::filesystem::path>> locks_of(const TuningOptions& o) {
  return {{"Output/Directory " + path_text(o.output), OutputLock::of_model(o.output)},
          {"Output/Run Directory " + path_text(o.run_path()), OutputLock::of_run(o.run_path())}};
}

// Runs the job; the reason of a failure is left in status.json.
template <class Job, class Options>
int tune(Session& session, const TuningCommand<Options>& command, const Options& options,
         const std::string& config, const RunArguments& arguments, const StopRequest& stop) {
  const auto note = std::make_shared<FailureNote>(StatusFile(options.run_path()));
  std::list<OutputLock> locks;  // until the reason of a failure is written, too
  try {
    Ranks& ranks = session.start({options.training.tp}, options.hang_seconds,
                                 arguments.check ? "." : options.run_path(),
                                 [note](const std::string& why) { note->write(why); });
    require_equal(ranks, "the configuration", config);
    for (const auto& [what, file] : locks_of(options)) OutputLock::require_free(ranks, what, file);
    Job job(options, ranks);
    TAPER_INFO("memory of rank 0\n" << job.memory_plan().table());
    const auto find = [&] {
      return find_resume_point(ranks, arguments.resume, options.run_path());
    };
    const RunStart start =
        job.examine(find(), arguments.check ? CheckpointCheck::kContents : CheckpointCheck::kHead);
    if (arguments.check) {
      job.report_start(start, config);
      TAPER_INFO("input is valid; " << outlook(start, command.start(options)));
      return session.finish(ExitCode::kDone);
    }
    for (const auto& [what, file] : locks_of(options)) locks.emplace_back(ranks, what, file);
    // What is there is looked at again now that this job has it for itself.
    const ResumePoint point = find();
    note->armed = true;
    const ExitCode code = job.run({config, &stop, point});
    note->armed = false;
    return session.finish(code);
  } catch (const std::exception& error) {
    note->write(error.what());
    throw;
  }
}

// A command from its arguments on.
template <class Job, class Options>
int run_tuning(int argc, char** argv, const TuningCommand<Options>& command) {
  RunArguments arguments;
  param::CommandLine line(command.name, command.about);
  arguments.declare(line, kTuningWords);
  if (line.shows_help(argc, argv)) return 0;
  Options options;
  param::Schema schema;
  describe(schema, options);
  const auto read = [&](param::Schema& filled) { filled.read(arguments.file()); };
  if (arguments.answered(schema, read)) return 0;
  StopRequest stop;  // before threads start
  Session session(argc, argv);
  read(schema);
  require_divisible(session.size(), {{"Training/Tensor Parallel", options.training.tp}});
  require_model_target("Output/Directory", options.output);
  if (session.rank() == 0) {
    require_output_directory("Output/Directory", options.output);
    require_output_directory("Output/Run Directory", options.run_path());
    require_run_places(options.run_path());
  }
  stop.set_deadline(arguments.deadline - options.deadline_margin);
  return tune<Job>(session, command, options, schema.current_yaml(), arguments, stop);
}

}  // namespace taper
