// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace taper {

enum class RunState { kPending, kRunning, kCompleted, kStopped, kFailed };

// status.json of a run, for scripts: {"state", "iteration", "iterations", "time"[, "why"]}, where
// iteration counts the finished ones and time is that of writing, UTC. Replaced in one step:
// readers never find a half.
class StatusFile {
 public:
  StatusFile(std::filesystem::path directory, std::int64_t iterations)
      : path_(std::move(directory) / "status.json"), iterations_(iterations) {}

  // Any rank may; usually rank 0, but the rank that fails says so itself. Throws Error where the
  // file cannot be written.
  void write(RunState state, std::int64_t iteration, const std::string& why = "") const;
  // The iteration that the file has, 0 where there is none or it cannot be read.
  std::int64_t last_iteration() const;
  // For a run that ends anyway: "failed" with the iteration that the file has; what prevents it is
  // only logged.
  void write_failure(const std::string& why) const noexcept;

 private:
  std::filesystem::path path_;
  std::int64_t iterations_;
};

}  // namespace taper
