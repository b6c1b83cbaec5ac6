// SPDX-License-Identifier: Apache-2.0
//
// Faults on purpose, for tests of whole runs. Only in builds with TAPER_ENABLE_FAULTS, and inert
// without the environment variable
//
//   TAPER_FAULT=phase:rank:kind[:iteration[:step]]
//
// phase, iteration and step as Progress tells them ("gen", "reward", "update_actor",
// "save_checkpoint", ...; doc/dev/testing.md). Without a step the fault comes when the phase
// begins, with one when the step is reached in it; without an iteration in the first that does. The
// kind slow2 (or slow3, ...) makes the rank so many times as slow between collectives of the phase,
// from the iteration on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace taper {

#ifdef TAPER_FAULTS

enum class FaultKind {
  kKill,    // SIGKILL: the process is gone
  kThrow,   // an Error
  kFreeze,  // SIGSTOP: the process is there and does nothing
  kStray,   // the next collective of this rank is another one than that of the other ranks
  kTerm,    // SIGTERM: a stop request to this rank alone
  kSlow,    // computes as if its cores were slower
};

struct FaultHook {
  std::string phase;
  int rank = 0;
  FaultKind kind = FaultKind::kKill;
  std::optional<std::int64_t> iteration, step;
  int times = 1;  // of kSlow

  // Nothing for an empty text. Throws Error for what is no fault.
  static std::optional<FaultHook> parse(std::string_view text);
  static std::optional<FaultHook> from_environment();

  // Whether the fault is due on this rank; `now` is the step, nothing when the phase begins.
  bool is_due(std::string_view current_phase, std::int64_t current_iteration,
              std::optional<std::int64_t> now) const;
  // Does it: does not come back from kKill; kStray is left to the caller.
  void strike() const;
  // Of kSlow: waits as much longer as slower cores would have taken for the work since then.
  void slow_down(std::string_view current_phase, std::int64_t current_iteration,
                 std::int64_t since_ns) const;
};

// The places where the fault of a process may strike.
class Faults {
 public:
  Faults() : Faults(FaultHook::from_environment()) {}
  Faults(std::optional<FaultHook> fault) : fault_(std::move(fault)) {}

  // A phase begins (no step), or a step in it.
  void pass(std::string_view phase, std::int64_t iteration, std::optional<std::int64_t> step) {
    if (!fault_ || !fault_->is_due(phase, iteration, step)) return;
    if (fault_->kind == FaultKind::kStray) stray_ = true;
    fault_->strike();
  }
  // A collective begins; the rank has worked since then, in ns of the steady clock.
  void wait_if_slow(std::string_view phase, std::int64_t iteration, std::int64_t since_ns) const {
    if (fault_ && fault_->kind == FaultKind::kSlow) fault_->slow_down(phase, iteration, since_ns);
  }
  // Whether the next collective of this rank must be another one. Once.
  bool take_stray_fault() { return std::exchange(stray_, false); }

 private:
  std::optional<FaultHook> fault_;
  bool stray_ = false;
};

#else

class Faults {
 public:
  void pass(std::string_view, std::int64_t, std::optional<std::int64_t>) {}
  void wait_if_slow(std::string_view, std::int64_t, std::int64_t) const {}
  bool take_stray_fault() { return false; }
};

#endif

}  // namespace taper
