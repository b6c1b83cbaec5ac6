// SPDX-License-Identifier: Apache-2.0
//
// What the results of a run are called, and where they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace taper {

// What checkpoints and rollout files of an iteration are called: "iter_000012", six digits or as
// many as it needs. From a million on, the order of the names is not that of the iterations.
std::string iteration_name(std::int64_t iteration);

// The iteration of such a name, nothing for all others.
std::optional<std::int64_t> iteration_of_name(std::string_view name);

struct IterationEntry {
  std::int64_t iteration = 0;
  std::filesystem::path path;
};

// What a directory has of the type whose name is that of an iteration and `ending`, in the order of
// the iterations. None if there is no such directory.
std::vector<IterationEntry> iteration_entries(const std::filesystem::path& directory,
                                              std::string_view ending,
                                              std::filesystem::file_type type);

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
  // A folder of rollout files: what is known of iterations that will come again.
  std::filesystem::path journal() const;

  std::filesystem::path checkpoint(std::int64_t iteration) const;
  std::filesystem::path rollout(std::int64_t iteration) const;
  std::filesystem::path journal(std::int64_t iteration) const;

  // Throws Error if something in the directory has the name of a result but is a file instead
  // of a directory, or the reverse.
  void require_places() const;

  // Removes the rollout files, and what is left of half-written ones, of iterations after
  // `finished`: an abandoned run left them, and its iterations will come again. Whatever else a
  // user keeps with them stays. One rank only.
  void remove_rollouts_after(std::int64_t finished) const;
  // Moves those files to the journal instead, over what it has of these iterations. One rank only.
  void move_rollouts_to_journal(std::int64_t finished) const;
  // Removes the journal of iterations up to `finished`, and its folder if nothing else is in it.
  // One rank only.
  void remove_journal(std::int64_t finished) const;

 private:
  std::filesystem::path path_;
};

// The rollout files of a folder in the order of their iterations; none if there is no such
// folder.
std::vector<std::filesystem::path> rollout_files(const std::filesystem::path& folder);

// Models of a checkpoint beside the policy: the critic, and the draft model or the early exits if
// they are trained.
inline constexpr const char *kCriticPart = "critic", *kDraftPart = "draft", *kExitsPart = "exits";

// The directory of a checkpoint: what it has besides the files of the model.
class CheckpointDirectory {
 public:
  explicit CheckpointDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path state() const;     // StateFile.hpp
  std::filesystem::path manifest() const;  // of all files; not in those of parts
  // Of another model of the run, in a folder of this name: kCriticPart, kDraftPart; heads of early
  // exits in folders of kExitsPart.
  CheckpointDirectory part(const std::string& name) const;
  // The state files that there are, of the checkpoint and of its parts.
  std::vector<std::filesystem::path> states() const;

 private:
  std::filesystem::path path_;
};

}  // namespace taper
