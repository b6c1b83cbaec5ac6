// SPDX-License-Identifier: Apache-2.0
//
// The commands that fine-tune a model on examples: all but what is learned is alike.
#pragma once

#include <memory>
#include <vector>

#include "RunArguments.hpp"
#include "base/Path.hpp"
#include "checkpoint/SaveModel.hpp"
#include "io/OutputPath.hpp"
#include "results/RunDirectory.hpp"
#include "run/JobLife.hpp"
#include "run/OutputLock.hpp"
#include "session/LayoutChecks.hpp"
#include "session/Session.hpp"
#include "session/StopRequest.hpp"
#include "tune/TuningJob.hpp"
#include "tune/TuningOptions_params.hpp"

namespace taper {

inline constexpr RunArguments::HelpTexts kTuningHelp{
    "Training/Steps=100",
    "auto: resumes from the newest checkpoint; none: starts over and deletes earlier results in "
    "Output/Run Directory; DIR: resumes from this checkpoint, or from the newest one of this run "
    "(another run's needs a new Output/Run Directory)",
    "checks input, files and memory, prints the memory plan, and exits; changes nothing"};

// What a command says of itself.
struct CommandText {
  const char* name;   // "taper sft"
  const char* about;  // a sentence
};

// The model directory has a lock file beside it, the run directory one of its own as that of taper
// train has: if a user names it, another job with another model may write there, and taper
// inspect looks there.
inline std::vector<JobOutput> outputs_of(const TuningOptions& o) {
  return {{"Output/Directory " + path_text(o.output), OutputLock::of_model(o.output)},
          {"Output/Run Directory " + path_text(o.run_path()), RunDirectory(o.run_path()).lock()}};
}

// A command from its arguments on.
template <class Tuning, class Options>
int run_tuning(int argc, char** argv, const CommandText& words) {
  RunArguments arguments;
  param::CommandLine line(words.name, words.about);
  arguments.declare(line, kTuningHelp);
  if (line.parse_or_print_help(argc, argv)) return 0;
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
  const RunDirectory run(options.run_path());
  if (session.rank() == 0) {
    require_output_directory("Output/Directory", options.output);
    require_output_directory("Output/Run Directory", options.run_path());
    run.require_places();
  }
  stop.set_deadline(arguments.job_deadline() - options.deadline_margin);
  const TuningContext context{schema.current_yaml(), &stop};
  const JobLife life{.directory = run,
                     .directory_key = "Output/Run Directory",
                     .status = StatusFile(run),
                     .outputs = outputs_of(options),
                     .tp_degrees = {options.training.tp},
                     .hang_seconds = options.hang_seconds,
                     .precision = options.model.precision(),
                     .config = context.config,
                     .resume = arguments.resume,
                     .stop = &stop,
                     .purpose = arguments.purpose()};
  return life.live(session, [&](const Ranks& ranks) {
    return std::make_unique<Tuning>(options, ranks, context);
  });
}

}  // namespace taper
