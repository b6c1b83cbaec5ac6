// SPDX-License-Identifier: Apache-2.0
//
// What the results of a run are called, and where they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

namespace taper {

// The directory of a run. Who writes a result or looks for it asks here where it is; whether it is
// there, this does not say.
class RunDirectory {
 public:
  RunDirectory() = default;
  // Not explicit: a run is named by its directory.
  RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path metrics() const;      // the log of record, MetricsLog.hpp
  std::filesystem::path run_file() const;     // the same and more for evaluation, RunFile.hpp
  std::filesystem::path status() const;       // where the run stands, for scripts
  std::filesystem::path best() const;         // which checkpoint is the best one
  std::filesystem::path lock() const;         // names the job that has the directory
  std::filesystem::path checkpoints() const;  // a folder of folders, one for an iteration
  std::filesystem::path rollouts() const;     // a folder of files, one for an iteration
  std::filesystem::path reward_logs() const;  // a folder: what reward commands say

  std::filesystem::path checkpoint(std::int64_t iteration) const;
  std::filesystem::path rollout(std::int64_t iteration) const;

  // Throws Error where something in the directory has the name of a result but is a file instead
  // of a directory, or the reverse.
  void require_places() const;

  // Removes the rollout files, and what is left of half-written ones, of iterations after
  // `finished`: an abandoned run left them, and its iterations will come again. Whatever else a
  // user keeps with them stays. One rank only.
  void remove_rollouts_after(std::int64_t finished) const;

 private:
  std::filesystem::path path_;
};

// The rollout files of a folder in the order of their iterations; none where there is no such
// folder.
std::vector<std::filesystem::path> rollout_files(const std::filesystem::path& folder);

// The directory of a checkpoint: what it has besides the files of the model.
class CheckpointDirectory {
 public:
  explicit CheckpointDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path state() const;     // StateFile.hpp
  std::filesystem::path manifest() const;  // of all files; not in that of a critic
  // Of the critic, where the run has one: its model and state.
  CheckpointDirectory critic() const;

 private:
  std::filesystem::path path_;
};

}  // namespace taper
