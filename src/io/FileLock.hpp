// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "io/Descriptor.hpp"

namespace taper {

// A lock file that one process at a time has: the kernel's advisory lock of the file (flock), which
// ends with the process however that ends, on all machines for which the file system carries it.
// The text in the file is for people and says who has it: host, process, start and Slurm job. If
// the file system knows no such locks, the text decides: a process of this host that runs, or any
// of another host, has the lock.
class FileLock {
 public:
  // Nothing happens yet. `what` says in errors what the lock is for: "Output/Directory runs/a".
  // `grace`: how long a holder that may be ending is waited for.
  FileLock(std::filesystem::path path, std::string what,
           std::chrono::duration<double> grace = std::chrono::seconds(2))
      : path_(std::move(path)), what_(std::move(what)), grace_(grace) {}
  // Gives the lock back and removes the file, unless leave_behind() was called.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Creates the directory of the file if there is none. True once this process has the lock; false
  // if it must be asked again in a moment, for `grace` at most. Throws Error (kBadInput) naming who
  // has it, and if the file cannot be written.
  bool try_take();
  // The same, but takes and writes nothing: true once nobody has the lock.
  bool try_free();
  // Asks until it has the lock. Throws Error as try_take().
  void take();

  static bool is_held(const std::filesystem::path& path);

  // The lock is kept until the process ends, and the file stays: for a process that ends while
  // others still write under its lock.
  void leave_behind() { stays_ = true; }

  static constexpr std::chrono::milliseconds kPause{100};  // between two tries

 private:
  void refuse_after_grace();

  std::filesystem::path path_;
  std::string what_;
  std::chrono::duration<double> grace_;
  std::optional<std::chrono::steady_clock::time_point> held_since_;  // as seen from here
  bool stays_ = false;
  detail::Descriptor file_;  // open while this process has the lock
};

}  // namespace taper
