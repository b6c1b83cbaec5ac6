// SPDX-License-Identifier: Apache-2.0
//
// Programs that go wrong on purpose; CMakeLists.txt says how each must end. Usage:
// session_fault <case>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#include "comm/GroupCache.hpp"
#include "comm/MpiCall.hpp"
#include "comm/Progress.hpp"
#include "session/Guard.hpp"
#include "session/Startup.hpp"
#include "session/Watchdog.hpp"

using namespace taper;

namespace {

void exchange(const Group& world) {
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  all_gather(world, all, std::vector<int>{world.rank()});
}

// What rank 1 does while the others are in their first or second collective.
void misbehave(const std::string& fault, const Group& world) {
  if (fault.starts_with("sleep")) {
    for (;;) ::pause();
  }
  if (fault == "kill") std::raise(SIGKILL);
  if (fault == "freeze") std::raise(SIGSTOP);
  if (fault == "throw") TAPER_FAIL(ExitCode::kFailure, "the plan is empty");
  if (fault == "throw-bad-input") TAPER_VALIDATE(false, "Rollout/Temperature is -1");
  if (fault == "throw-unknown") throw 17;
  if (fault == "mpi-error") TAPER_MPI_CALL(MPI_Bcast(nullptr, 1, MPI_INT, 99, world.comm()));
}

int run(const std::string& fault, int argc, char** argv) {
  if (fault == "throw-before-mpi") TAPER_VALIDATE(false, "unknown option");
  if (fault == "sleep-without-files")  // opening one waits for a reader
    for (const char* report : {"hang-rank-0.txt", "hang-rank-1.txt"}) ::mkfifo(report, 0600);
  Progress progress;
  const Watchdog watchdog(progress, {.hang_seconds = 0.5, .grace_seconds = 1.0, .directory = "."});
  MpiSession session(argc, argv);
  session.watch(progress);
  GroupOptions options;
  options.progress = &progress;
  progress.set_phase("generation");
  progress.set_iteration(3);
  progress.set_step(17);
  if (fault == "throw-with-groups") {
    const auto groups = GroupCache::for_chain(MPI_COMM_WORLD, DivisorChain::of(session.ranks()));
    if (session.rank() == 1) TAPER_FAIL(ExitCode::kFailure, "after the groups");
    barrier(groups.world());
    barrier(groups.world());
    return 0;
  }
  const Group world = Group::world(MPI_COMM_WORLD, options);
  if (fault == "watched") {
    progress.watch(
        &world, [](double) { return "NCCL reports: remote error"; },
        [] { log_line(LogLevel::kError, "abandoned"); });
    for (;;) ::pause();
  }
  if (fault == "watched-for-ever") {  // it cannot be abandoned, and nothing may go on meanwhile
    std::atomic<bool> is_abandoned{false};
    progress.watch(
        &world, [](double) { return "NCCL reports: remote error"; },
        [&] {
          log_line(LogLevel::kError, "abandoned");
          is_abandoned = true;
          for (;;) ::pause();
        });
    while (!is_abandoned) ::usleep(1000);
    progress.set_step(18);
    log_line(LogLevel::kError, "goes on");
  }
  if (fault == "skip-collective") {
    exchange(world);
    if (session.rank() != 1) barrier(world);
    return 0;
  }
  if (fault == "throw-everywhere" || fault == "throw-alone")
    TAPER_VALIDATE(false, "Rollout/Prompts is 0");
  if (fault == "throw-differently") TAPER_VALIDATE(false, "this is rank " << session.rank());
  if (session.rank() == 1) misbehave(fault, world);
  exchange(world);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "";
  const int code = run_guarded([&] { return run(fault, argc, argv); });
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) std::puts("the program ends without MPI_Finalize");
  return code;
}
