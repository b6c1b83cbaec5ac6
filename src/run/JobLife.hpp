// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "device/Arena.hpp"
#include "run/ResumePoint.hpp"
#include "run/RunStart.hpp"
#include "run/StatusFile.hpp"
#include "session/Session.hpp"

namespace taper {

// A job that writes a run directory and goes on from its checkpoints. All calls are collective over
// the world, but memory_plan() and what only says something.
class Job {
 public:
  virtual ~Job() = default;

  // What this rank will hold.
  virtual const MemoryPlan& memory_plan() const = 0;
  // All that can be known before anything is allocated or written. Throws Error.
  virtual RunStart examine(const ResumePoint& from, CheckpointCheck check) const = 0;
  // What a run with that start would find otherwise than its checkpoint's run had it, has lost and
  // would remove, into the log of rank 0.
  virtual void report_start(const RunStart& start) const = 0;
  // What a run with that start would do, as people read it: "would go on after step 3 (...)".
  virtual std::string outlook(const RunStart& start) const = 0;
  // Examines again, allocates, loads, and runs what is left to its end or to a stop. kDone or
  // kStoppedEarly.
  virtual ExitCode run(const ResumePoint& from) = 0;
};

// Something that a job writes and that is its own while it runs.
struct JobOutput {
  std::string what;            // "Output/Directory runs/a", for errors
  std::filesystem::path lock;  // the file that says who has it
};

// A job from its first collective call to its exit code: the same for all commands.
struct JobLife {
  std::filesystem::path directory;  // of the run: status.json, checkpoints, reports of hangs
  StatusFile status;
  std::vector<JobOutput> outputs;
  std::vector<int> tp_degrees;  // that the job's groups have
  double hang_seconds = 600.0;
  std::string config;  // the parameters in use, the same on all ranks
  std::string resume;  // --resume
  bool check = false;  // --check: only examine; nothing is left behind

  // Starts the ranks, makes the job, examines it and, unless it is only checked, locks its outputs
  // and runs it. The reason of a failure is left in status.json once the job runs. Returns what the
  // process ends with. Collective over the world.
  int live(Session& session,
           const std::function<std::unique_ptr<Job>(const Ranks& ranks)>& make) const;
};

}  // namespace taper
