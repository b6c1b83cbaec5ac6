// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "session/Watchdog.hpp"

namespace taper {

// Options of every job, whatever it trains.
struct JobOptions {
  std::uint64_t seed = 1;              // of all random numbers
  double hang_seconds = kHangSeconds;  // that a rank may wait for another one
  double deadline_margin = 120.0;      // seconds before the deadline at which the job stops
};

struct CheckpointOptions {
  int every = 10;  // iterations; 0: only at the end
  int keep = 2;
};

}  // namespace taper
