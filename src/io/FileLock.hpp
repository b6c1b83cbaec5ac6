// SPDX-License-Identifier: Apache-2.0
//
// A lock file: one process of all machines that share a file system has it. Three things decide
// whether another process has it, since none reaches everywhere:
//
// - the kernel's advisory lock of the file (flock), which ends with the process however that ends.
//   Among the processes of one machine it always counts, among machines where the file system
//   carries it (NFS, Lustre mounted with flock). Held: the lock is taken;
// - the name in the file: a process of this machine (boot, process numbers) that still runs and
//   started when the file says has the lock, also where the file system knows no flock;
// - signs of life: the holder touches the file every few seconds. A file of another machine is
//   watched: one that changes is held, one that stays silent was left behind by a killed process
//   and is taken over. Only changes count, so clocks may differ.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "io/detail/Descriptor.hpp"
#include "io/detail/LockHolder.hpp"

namespace taper {

// In seconds.
struct FileLockTimes {
  double beat = 5.0;      // between signs of life
  double grace = 5.0;     // in which a holder that is alive may come to its end
  double silence = 30.0;  // of a holder on another machine that counts as gone; many beats
};

class FileLock {
 public:
  // Nothing happens yet. `what` says in errors what the lock is for: "Output/Directory runs/a".
  FileLock(std::filesystem::path path, std::string what, FileLockTimes times = {});
  // Gives the lock back and removes the file.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // True once this process has the lock; false where it must be asked again in a moment, for at
  // most `grace` or `silence` in all. Throws Error (kBadInput) naming who has it, and where the
  // file cannot be written.
  bool try_take();
  // Asks until it has the lock. Throws Error as try_take().
  void take();

  static constexpr std::chrono::milliseconds kPause{100};  // between two tries

 private:
  using Clock = std::chrono::steady_clock;
  // A file that nobody touches keeps it.
  struct Sign {
    std::uintmax_t inode = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Sign&) const = default;
  };

  static Sign sign_of(const detail::Descriptor& file);
  bool is_in_place(const detail::Descriptor& file) const;
  void hold(detail::Descriptor file);
  void wait_for_end(const std::optional<detail::LockHolder>& holder);
  bool is_silent(const detail::Descriptor& file, const std::optional<detail::LockHolder>& holder);
  [[noreturn]] void refuse(const std::optional<detail::LockHolder>& holder) const;
  void beat();

  std::filesystem::path path_;
  std::string what_;
  FileLockTimes times_;
  detail::Descriptor file_;  // open while this process has the lock
  std::optional<Clock::time_point> alive_since_, silent_since_;  // of who has it, as seen from here
  Sign seen_;
  std::mutex mutex_;
  std::condition_variable signal_;
  bool over_ = false;
  std::thread beating_;
};

}  // namespace taper
