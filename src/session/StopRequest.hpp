// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <limits>
#include <string>

#include "comm/Group.hpp"

namespace taper {

// Why a run stops early, the most urgent last.
enum class StopReason : int { kNone, kDeadline, kUser, kInterrupt, kTerminate };

// "deadline", "SIGUSR1", "SIGINT", "SIGTERM"; "" for kNone.
std::string to_string(StopReason reason);

// Seconds since 1970 by TAPER_DEADLINE (job scripts export it), infinity if it is not set.
// Throws Error if it is no number.
double deadline_of_environment();

// Whether the run was asked to stop at its next safe point: by SIGTERM, SIGINT (Ctrl-C), SIGUSR1,
// or because its time is nearly over. While this object lives these signals end nothing: they are
// blocked, and mine() looks whether one is pending. One per process, made before MPI and Kokkos
// start threads, which inherit the blocked signals.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Seconds since 1970 at which to stop, infinity for never. Once mine() has seen one pass, a later
  // one changes nothing.
  void set_deadline(double seconds) { deadline_ = seconds; }

  // What this process knows. Once asked for, a stop stays so.
  StopReason mine() const;
  // The most urgent reason of any rank, the same on all: only this may be acted upon. Collective
  // over `group`.
  StopReason agreed(const Group& group) const;

 private:
  double deadline_ = std::numeric_limits<double>::infinity();
  mutable bool is_over_ = false;  // the deadline
  sigset_t signals_{}, before_{};
};

// The stop that all ranks of a job have agreed on.
class StopAgreement {
 public:
  // Without a request nothing is ever agreed. Refers to both.
  StopAgreement(const StopRequest* request, const Group& world)
      : request_(request), world_(&world) {}

  // Whether the job stops. Once agreed, it stays so. Collective over the world.
  bool reached();
  // Whether a rank of `group` was asked to stop, for groups that work without the others. The
  // answer is not remembered: reached() must follow, over all ranks. Collective over `group`.
  bool is_wanted_in(const Group& group) const;

  StopReason reason() const { return reason_; }

 private:
  const StopRequest* request_;
  const Group* world_;
  StopReason reason_ = StopReason::kNone;
};

}  // namespace taper
