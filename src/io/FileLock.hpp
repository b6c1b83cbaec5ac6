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
//
// Who was stopped for long (a suspended job) may lose the lock to another machine that saw nothing
// but silence, or to a user who removes the file. With each sign of life the holder therefore reads
// the file again: where it is not its own any more, the process ends at once, before two of them
// have written much.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "io/Descriptor.hpp"
#include "io/detail/LockHolder.hpp"

namespace taper {

// In seconds.
struct FileLockTimes {
  double beat = 5.0;      // between signs of life
  double grace = 5.0;     // in which a holder of this machine that is ending may come to its end;
                          // else it is refused at once, one of another machine at its first sign
                          // of life
  double silence = 30.0;  // of a holder on another machine that counts as gone; many beats
};

class FileLock {
 public:
  // Nothing happens yet. `what` says in errors what the lock is for: "Output/Directory runs/a".
  // `on_loss` is told, by a thread of its own, that another one has the lock now; without it that
  // is logged and the process ends with kFailure.
  FileLock(std::filesystem::path path, std::string what, FileLockTimes times = {},
           std::function<void(const std::string&)> on_loss = {});
  // Gives the lock back and removes the file, unless leave_behind() was called.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // True once this process has the lock; false where it must be asked again in a moment, for at
  // most `grace` or `silence` in all. Throws Error (kBadInput) naming who has it, and where the
  // file cannot be written.
  bool try_take();
  // Throws Error as try_take() would at once, where a process of this machine has the lock and is
  // not about to end. Writes nothing, takes nothing.
  void require_free() const;
  // Whether surely nobody has the lock: there is no file, or it names a process of this machine
  // that has ended. Writes nothing.
  bool is_abandoned() const;
  // Asks until it has the lock. Throws Error as try_take().
  void take();

  // The file stays when this object ends, as after a kill: the next one takes it over once this
  // process is gone. For a process that ends while others still write under its lock.
  void leave_behind() { stays_ = true; }

  static constexpr std::chrono::milliseconds kPause{100};  // between two tries

 private:
  using Clock = std::chrono::steady_clock;
  // A file that nobody touches keeps it.
  struct Sign {
    std::uintmax_t inode = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Sign&) const = default;
  };

  // Nothing where the file was removed on another machine.
  static std::optional<Sign> sign_of(const detail::Descriptor& file);
  bool is_in_place(const detail::Descriptor& file) const;
  bool is_lost() const;
  void hold(detail::Descriptor file);
  void refuse_after_grace(const std::optional<detail::LockHolder>& holder);
  bool watch_for_silence(const detail::Descriptor& file,
                         const std::optional<detail::LockHolder>& holder);
  [[noreturn]] void refuse(const std::optional<detail::LockHolder>& holder) const;
  void beat();

  std::filesystem::path path_;
  std::string what_;
  FileLockTimes times_;
  std::function<void(const std::string&)> on_loss_;
  bool stays_ = false;
  detail::Descriptor file_;  // open while this process has the lock
  std::string text_;         // what stands in it then
  std::optional<Clock::time_point> alive_since_, silent_since_;  // of who has it, as seen from here
  Sign seen_;
  std::mutex mutex_;
  std::condition_variable signal_;
  bool over_ = false;
  std::thread beating_;
};

}  // namespace taper
