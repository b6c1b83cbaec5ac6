// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "Commands.hpp"
#include "RunArguments.hpp"
#include "RunRewards.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "io/OutputPath.hpp"
#include "results/RunDirectory.hpp"
#include "run/JobLife.hpp"
#include "session/Session.hpp"
#include "session/StopRequest.hpp"
#include "train/RunDegrees.hpp"
#include "train/RunOptions_params.hpp"
#include "train/TrainJob.hpp"
#include "workers/Spawner.hpp"

namespace taper {
namespace {

constexpr RunArguments::HelpTexts kHelp{
    "Rollout/Temperature=0.8",
    "auto: resumes from the newest checkpoint; none: starts over and deletes earlier results in "
    "Output/Directory; DIR: resumes from this checkpoint, or from the newest one of this run "
    "(another run's needs a new Output/Directory)",
    "checks input, files, memory and the checkpoint to resume from, prints where the run would "
    "start, and exits; changes nothing"};

}  // namespace

int run_train(int argc, char** argv) {
  RunArguments arguments;
  param::CommandLine line("taper train",
                          "Trains a model by reinforcement learning, configured by a run file.");
  arguments.declare(line, kHelp);
  if (line.parse_or_print_help(argc, argv)) return 0;
  RunOptions options;
  param::Schema schema;
  describe(schema, options);
  if (arguments.answered(schema, [&](param::Schema& s) { read_run(s, arguments.file()); }))
    return 0;
  const auto spawner = make_spawner([&] { return read_rewards(arguments.file()); });
  StopRequest stop;  // before threads start
  Session session(argc, argv);
  const AppliedPreset preset = read_run(schema, arguments.file());
  const RunDirectory run(options.output);
  if (session.rank() == 0) {
    if (!preset.name.empty()) TAPER_INFO(preset.summary());
    require_output_directory("Output/Directory", options.output);
    run.require_places();
  }
  stop.set_deadline(arguments.job_deadline() - options.deadline_margin);
  const std::string config = schema.current_yaml();
  const JobLife life{.directory = run,
                     .status = StatusFile(run, options.training.iterations),
                     .outputs = {{"Output/Directory " + path_text(options.output), run.lock()}},
                     .tp_degrees = degrees_of(options, session.size()),
                     .hang_seconds = options.hang_seconds,
                     .precision = options.model.precision(),
                     .config = config,
                     .resume = arguments.resume,
                     .stop = &stop,
                     .purpose = arguments.purpose()};
  return life.live(session, [&](const Ranks& ranks) {
    return std::make_unique<TrainJob>(options, config, ranks, stop, spawner.get());
  });
}

}  // namespace taper
