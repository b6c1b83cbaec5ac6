// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "results/RunDirectory.hpp"

namespace taper {

enum class RunState { kPending, kRunning, kCompleted, kStopped, kFailed };

// status.json of a run, for scripts: {"state", "iteration", "iterations", "time"[, "why"]}, where
// iteration counts the finished ones and time is that of writing, UTC. Replaced in one step:
// readers never find a half.
class StatusFile {
 public:
  StatusFile(const RunDirectory& run, std::int64_t iterations)
      : path_(run.status()), iterations_(iterations) {}
  // Keeps the number of iterations that the file has, 0 if there is none: for callers that do not
  // know how many the run has.
  explicit StatusFile(const RunDirectory& run) : path_(run.status()) {}

  // Any rank may; usually rank 0, but the rank that fails says so itself. Throws Error if the
  // file cannot be written.
  void write(RunState state, std::int64_t iteration, const std::string& why = "") const;
  // The iteration that the file has, 0 if there is none or it cannot be read.
  std::int64_t last_iteration() const { return number("iteration"); }
  // For a run that ends anyway: "failed" with the iteration that the file has; what prevents it is
  // only logged.
  void write_failure(const std::string& why) const noexcept;

 private:
  std::int64_t number(const char* name) const;

  std::filesystem::path path_;
  std::optional<std::int64_t> iterations_;
};

// Leaves the reason of a failure in the status file. Shared with the watchdog, which lives longer
// than the job and reports from a thread of its own.
struct FailureNote {
  explicit FailureNote(StatusFile file) : status(std::move(file)) {}

  StatusFile status;
  // While the job runs: bad input found before leaves a directory as it was, and what happens after
  // does not undo the result.
  std::atomic<bool> armed = false;

  void write(const std::string& why) const {
    if (armed) status.write_failure(why);
  }
};

}  // namespace taper
