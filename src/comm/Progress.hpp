// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "comm/FaultHook.hpp"

namespace taper {

// What a process is doing, readable by another thread of it at any time. Written by the main thread
// (phases, steps) and by every collective; read by the watchdog. Names must be string literals.
class Progress {
 public:
  // One consistent enough view for a report; fields may be a few nanoseconds apart.
  struct View {
    const char* phase = "";
    std::int64_t iteration = 0;
    std::int64_t step = 0;
    const char* collective = "";  // the last one entered; "" before the first
    std::uint64_t number = 0;     // its number within its group
    int group_size = 0;
    bool inside_collective = false;
    double seconds_since_change = 0.0;
  };

  // Phases and steps are also where the faults of tests strike.
  explicit Progress(Faults faults = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set_phase(const char* phase);
  // To the phase within which another one has ended: nothing begins here, and no fault strikes.
  void return_to_phase(const char* phase) noexcept;
  void set_iteration(std::int64_t iteration);
  void set_step(std::int64_t step);

  void enter_collective(const char* name, std::uint64_t number, int group_size);
  void leave_collective();
  // That this process has been in collectives until now, waiting as a rule. Main thread only.
  double seconds_in_collectives() const { return static_cast<double>(inside_ns_) * 1e-9; }

  // Whether the next collective of this rank must be another one (FaultKind::kStray). Once.
  bool take_stray_fault() { return faults_.take_stray_fault(); }

  View read() const;

  using Question = std::function<std::string(double hang_seconds)>;
  // What the watchdog asks, on its own thread, beside these figures: what does not end or has
  // failed outside of the calls of this process, which the text tells (empty: nothing); and how it
  // abandons that before the process exits. `who` names the question.
  void watch(const void* who, Question question, std::function<void()> abandon);
  void unwatch(const void* who);
  std::string watched_problem(double hang_seconds) const;
  // Abandons all that is watched, which may not return. The main thread does not come beyond its
  // next step, phase or collective any more: what it was waiting for has left no results.
  void abandon_watched();

 private:
  void touch() noexcept;

  std::atomic<const char*> phase_{""};
  std::atomic<std::int64_t> iteration_{0};
  std::atomic<std::int64_t> step_{0};
  std::atomic<const char*> collective_{""};
  std::atomic<std::uint64_t> number_{0};
  std::atomic<int> group_size_{0};
  std::atomic<bool> inside_{false};
  std::atomic<std::int64_t> changed_ns_;  // steady clock
  std::atomic<bool> is_abandoned_{false};
  [[no_unique_address]] Faults faults_;  // main thread only, as the next two
  std::int64_t working_since_ns_;        // the last collective, or change of phase
  std::int64_t inside_ns_ = 0;
  mutable std::mutex watched_mutex_;
  struct Watched {
    Question question;
    std::function<void()> abandon;
  };
  std::map<const void*, Watched> watched_;
};

// A phase within another one, for as long as the scope lives.
class PhaseScope {
 public:
  PhaseScope(Progress& progress, const char* phase)
      : progress_(progress), outer_(progress.read().phase) {
    progress_.set_phase(phase);
  }
  ~PhaseScope() { progress_.return_to_phase(outer_); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Progress& progress_;
  const char* outer_;
};

// A wait for other ranks inside a library that makes its own collective calls (parallel HDF5,
// MPI_Finalize), for the watchdog.
class LibraryWait {
 public:
  LibraryWait(Progress& progress, const char* name, int ranks) : progress_(progress) {
    progress_.enter_collective(name, 0, ranks);
  }
  ~LibraryWait() { progress_.leave_collective(); }
  LibraryWait(const LibraryWait&) = delete;
  LibraryWait& operator=(const LibraryWait&) = delete;

 private:
  Progress& progress_;
};

// "phase generation, iteration 3, step 17, in barrier number 5 of a group of 2 for 12.0 s"
std::string to_string(const Progress::View& view);

}  // namespace taper
