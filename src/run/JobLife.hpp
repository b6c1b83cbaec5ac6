// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "results/RunDirectory.hpp"
#include "run/Job.hpp"
#include "run/StatusFile.hpp"
#include "session/Session.hpp"
#include "session/StopRequest.hpp"

namespace taper {

// Something that a job writes and that is its own while it runs.
struct JobOutput {
  std::string what;            // "Output/Directory runs/a", for errors
  std::filesystem::path lock;  // the file that says who has it
};

// A job from its first collective call to its exit code: the same for all commands.
struct JobLife {
  enum class Purpose {
    kRun,
    kCheck  // --check: only examine; nothing is left behind
  };

  RunDirectory directory;
  const char* directory_key = "Output/Directory";  // by which users know it
  StatusFile status;
  std::vector<JobOutput> outputs;
  std::vector<int> tp_degrees = {};  // that the job's groups have
  double hang_seconds = kHangSeconds;
  Precision precision = {};
  std::string config;                 // the parameters in use, the same on all ranks
  std::string resume;                 // --resume
  const StopRequest* stop = nullptr;  // that the job gets, too
  Purpose purpose = Purpose::kRun;

  using MakeJob = std::function<std::unique_ptr<Job>(const Ranks& ranks)>;

  // Starts the ranks and lives on them. Returns what the process ends with. Collective over the
  // world.
  int live(Session& session, const MakeJob& make) const;
  // Makes the job, examines it and, unless it is only checked, locks its outputs and runs it. The
  // reason of a failure is left in `note` once the job runs. Collective over the world.
  ExitCode live_on(const Ranks& ranks, FailureNote& note, const MakeJob& make) const;
};

}  // namespace taper
