// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/Placement.hpp"
#include "comm/Progress.hpp"
#include "comm/Startup.hpp"
#include "comm/Watchdog.hpp"
#include "device/Runtime.hpp"
#include "driver/Ranks.hpp"

namespace taper {

// What every parallel command starts with: MPI, Kokkos, watchdog. Members end in reverse order.
class Session {
 public:
  Session(int& argc, char**& argv);

  int rank() const { return mpi_.rank(); }
  int size() const { return mpi_.ranks(); }

  // Groups for the given tensor-parallel degrees, and a watchdog that reports into `directory`.
  Ranks& start(const std::vector<int>& tp_degrees, double hang_seconds,
               const std::string& directory);

  // Where the ranks run; of start().
  const Placement& placement() const { return placement_; }

 private:
  Progress progress_;
  MpiSession mpi_;
  Runtime runtime_;
  Placement placement_;
  std::unique_ptr<Ranks> ranks_;
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace taper
