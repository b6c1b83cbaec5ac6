// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "comm/Progress.hpp"
#include "device/Runtime.hpp"
#include "session/HostMap.hpp"
#include "session/Ranks.hpp"
#include "session/Startup.hpp"
#include "session/ThreadChoice.hpp"
#include "session/Watchdog.hpp"

namespace taper {

// What every parallel command starts with: MPI, Kokkos with a fair number of threads, watchdog.
// Members end in reverse order.
class Session {
 public:
  // Collective over the world.
  Session(int& argc, char**& argv);

  int rank() const { return mpi_.rank(); }
  int size() const { return mpi_.ranks(); }

  // Returns `code`, which the program must return, too. If MPI_Finalize hangs, the process ends
  // with it. Needed for codes other than 0.
  int finish(ExitCode code) {
    mpi_.set_exit_code(static_cast<int>(code));
    return static_cast<int>(code);
  }

  // Groups for the given tensor-parallel degrees, and a watchdog that reports into `directory` and
  // to `on_hang`. Throws Error if ranks share cores that they are pinned to. Collective over the
  // world.
  Ranks& start(const std::vector<int>& tp_degrees, double hang_seconds,
               const std::string& directory, std::function<void(const std::string&)> on_hang = {});

 private:
  // Logs with how many threads and which instructions the ranks compute, and warns of hosts with
  // too many threads and of units that cannot be used. Throws Error if the environment asks for
  // instructions that there are not. Collective over the world.
  void report_processors() const;

  Progress progress_;
  std::unique_ptr<Watchdog> watchdog_;  // to the end: MPI_Finalize waits for the other ranks too
  MpiSession mpi_;
  HostMap allowed_;  // before Kokkos has bound threads
  ThreadChoice threads_;
  Runtime runtime_;
  std::unique_ptr<Ranks> ranks_;
};

}  // namespace taper
