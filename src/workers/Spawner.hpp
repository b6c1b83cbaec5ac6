// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>
#include <vector>

#include "workers/detail/Handle.hpp"

namespace taper {

// A process to be started: its standard streams are two pipes and a log file.
struct WorkerCommand {
  std::vector<std::string> arguments;    // the program, looked for in PATH, and its arguments
  std::vector<std::string> environment;  // NAME=value, besides that of the job
  std::string log;                       // standard error is appended to this file
};

// A running worker, as the rank that asked for it sees it.
struct SpawnedWorker {
  pid_t pid = -1;
  detail::Handle to, from;  // its standard input and output; they do not block
};

// A small process that starts and ends the workers of a rank. A process that uses MPI must not fork
// (the memory of network cards is pinned, threads hold locks), so the spawner is forked before
// MPI_Init, and makes processes from then on. Its workers are sessions of their own: no Ctrl-C of a
// terminal reaches them. They die with the rank, however that ends: the spawner sees its socket
// close, ends what is left and leaves; if the spawner is killed, the kernel kills them.
class Spawner {
 public:
  // Forks: to be made before MPI_Init, and before any other thread.
  Spawner();
  // Closes the worker's streams, gives them a moment to leave, ends the others, and waits for all
  // that.
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  // Throws Error with kBadInput if the program or its log cannot be opened. May be called by
  // several threads.
  SpawnedWorker start(const WorkerCommand& command);

  // Ends a worker and all processes of its session, and says how it ended: "exited with code 1",
  // "ended by signal 9 (Killed)". One that has closed its output gets a moment to leave by itself.
  enum class Moment { kNone, kToLeave };
  std::string stop(pid_t pid, Moment moment);

  pid_t pid() const { return pid_; }

  static constexpr double kGraceSeconds = 1.0;  // for workers, at the end
  static constexpr double kMomentSeconds = 0.25;

 private:
  std::string ask(const std::string& message, SpawnedWorker* worker);

  std::mutex mutex_;
  pid_t pid_ = -1;
  detail::Handle socket_;
};

}  // namespace taper
