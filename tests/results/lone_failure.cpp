// SPDX-License-Identifier: Apache-2.0
//
// lone_failure FILE, on two ranks: both write rollouts into one file, and rank 1 alone runs out of
// memory. The guard must end rank 0, which waits inside HDF5.
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

#include "io/AtomicFile.hpp"
#include "results/RolloutFile.hpp"
#include "session/Guard.hpp"
#include "session/Startup.hpp"

using namespace taper;

// Collective in the standard, though few libraries wait there.
int MPI_Comm_free(MPI_Comm* comm) {
  if (std::uncaught_exceptions() > 0)
    std::fputs("a communicator is freed by one rank alone\n", stderr);
  return PMPI_Comm_free(comm);
}

int main(int argc, char** argv) {
  return run_guarded([&] {
    const MpiSession mpi(argc, argv);
    RolloutRecord record;
    record.id.prompt = mpi.rank();
    record.prompt_length = 1;
    record.tokens = {1, 2, 3};
    record.log_probs = {-1.0f, -2.0f};
    record.rewards = {0.0f};
    RolloutFileOptions options;
    options.bytes_per_writer = 1;  // both write
    options.reward_names = {"score"};
    if (mpi.rank() == 1) {  // no room for a copy of this name
      options.reward_names.front().assign(1 << 28, 'x');
      rlim_t pages = 0;
      std::ifstream("/proc/self/statm") >> pages;
      const rlim_t room = rlim_t{64} << 20;
      const rlimit limit{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + room, RLIM_INFINITY};
      setrlimit(RLIMIT_AS, &limit);
    }
    try {
      write_rollouts(argv[1], MPI_COMM_WORLD, {&record, 1}, options);
    } catch (...) {
      if (std::filesystem::exists(part_path(argv[1]))) std::puts("the side file is left");
      throw;
    }
    return 0;
  });
}
