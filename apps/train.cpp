// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "Commands.hpp"
#include "RunArguments.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "io/OutputPath.hpp"
#include "run/OutputLock.hpp"
#include "run/ResumePoint.hpp"
#include "run/RunStart.hpp"
#include "run/StatusFile.hpp"
#include "session/Session.hpp"
#include "session/StopRequest.hpp"
#include "train/Preset.hpp"
#include "train/RunOptions_params.hpp"
#include "train/TrainJob.hpp"
#include "workers/Spawner.hpp"

namespace taper {
namespace {

constexpr RunArguments::Words kWords{
    "Rollout/Temperature=0.8",
    "go on from the newest checkpoint, start afresh, or use this checkpoint (or the newest of this "
    "run); one of another run needs a new Output/Directory",
    "validates input, files, memory and the checkpoint to go on from, says where the run would "
    "start, and exits; leaves nothing behind"};

AppliedPreset read(const RunArguments& arguments, param::Schema& schema) {
  param::ParamFile file = arguments.file();
  AppliedPreset preset = apply_preset(file);
  schema.read(file);
  return preset;
}

std::vector<RewardOptions> rewards_of(const RunArguments& arguments) {
  RunOptions options;
  param::Schema schema;
  describe(schema, options);
  read(arguments, schema);
  return {options.rewards.begin(), options.rewards.end()};
}

// Runs the job; the reason of a failure is left in status.json.
int train(Session& session, const RunOptions& options, const std::string& config,
          const RunArguments& arguments, const StopRequest& stop, Spawner* spawner) {
  const auto note =
      std::make_shared<FailureNote>(StatusFile(options.output, options.training.iterations));
  std::optional<OutputLock> lock;  // until the reason of a failure is written, too
  try {
    require_layout("Rollout/Layout", options.rollout.layout, session.size());
    const int critic_tp = options.critic_in_use().tp;  // that of the training without a critic
    require_divisible(session.size(), {{"Rollout/Tensor Parallel", options.rollout.tp},
                                       {"Training/Tensor Parallel", options.training.tp},
                                       {"Critic/Tensor Parallel", critic_tp}});
    std::vector<int> degrees = degrees_of_layout(options.rollout.layout);
    degrees.insert(degrees.end(), {options.training.tp, options.rollout.tp, critic_tp});
    for (const RewardOptions& reward : options.rewards) {
      if (reward.model.tp == 0) continue;
      require_divisible(session.size(),
                        {{"Rewards/" + reward.name + "/Tensor Parallel", reward.model.tp}});
      degrees.push_back(reward.model.tp);
    }
    Ranks& ranks =
        session.start(degrees, options.hang_seconds, arguments.check ? "." : options.output,
                      [note](const std::string& why) { note->write(why); });
    require_equal(ranks, "the configuration", config);
    const std::string what = "Output/Directory " + path_text(options.output);
    OutputLock::require_free(ranks, what, OutputLock::of_run(options.output));
    TrainJob job(options, config, ranks, stop, spawner);
    TAPER_INFO("memory of rank 0\n" << job.memory_plan().table());
    const ResumePoint from = find_resume_point(ranks, arguments.resume, options.output);
    const RunStart start =
        job.examine(from, arguments.check ? CheckpointCheck::kContents : CheckpointCheck::kHead);
    if (arguments.check) {
      job.report_start(start);
      TAPER_INFO("input is valid; " << outlook(start, options.training.iterations));
      return session.finish(ExitCode::kDone);
    }
    // From here on something is written; what is there is looked at again now that this job has it
    // for itself: another one may have ended while this one waited.
    lock.emplace(ranks, what, OutputLock::of_run(options.output));
    const ResumePoint point = find_resume_point(ranks, arguments.resume, options.output);
    note->armed = true;
    const ExitCode code = job.run(point);
    note->armed = false;
    return session.finish(code);
  } catch (const std::exception& error) {
    note->write(error.what());
    throw;
  }
}

}  // namespace

int run_train(int argc, char** argv) {
  RunArguments arguments;
  param::CommandLine line("taper train",
                          "Trains a model by reinforcement learning, as a run file says.");
  arguments.declare(line, kWords);
  if (line.shows_help(argc, argv)) return 0;
  RunOptions options;
  param::Schema schema;
  describe(schema, options);
  if (arguments.answered(schema, [&](param::Schema& filled) { read(arguments, filled); })) return 0;
  const auto spawner = make_spawner([&] { return rewards_of(arguments); });
  StopRequest stop;  // likewise
  Session session(argc, argv);
  const AppliedPreset preset = read(arguments, schema);
  if (session.rank() == 0) {
    if (!preset.name.empty()) TAPER_INFO(preset.summary());
    require_output_directory("Output/Directory", options.output);
    require_run_places(options.output);
  }
  stop.set_deadline(arguments.deadline - options.deadline_margin);
  if (session.rank() == 0 && stop.mine() == StopReason::kDeadline)
    TAPER_WARN(
        "the time of this job is over already (--deadline or TAPER_DEADLINE, less "
        "Run/Deadline Margin): it stops before its first iteration, with exit code 75; give "
        "a later time, in seconds since 1970");
  return train(session, options, schema.current_yaml(), arguments, stop, spawner.get());
}

}  // namespace taper
