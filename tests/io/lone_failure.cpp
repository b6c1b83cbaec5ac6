// SPDX-License-Identifier: Apache-2.0
//
// lone_failure FILE, on two ranks: both write rollouts into one file, and rank 1 fails alone. The
// guard must end rank 0, which waits inside HDF5.
#include <mpi.h>

#include <cstdio>
#include <filesystem>

#include "comm/Guard.hpp"
#include "comm/Startup.hpp"
#include "io/AtomicFile.hpp"
#include "io/RolloutFile.hpp"

using namespace taper;

int main(int argc, char** argv) {
  return run_guarded([&] {
    const MpiSession mpi(argc, argv);
    RolloutRecord record;
    record.group = mpi.rank();
    record.prompt_length = 1;
    record.tokens = {1, 2, 3};
    record.log_probs = {-1.0f, -2.0f};
    RolloutFileOptions options;
    options.bytes_per_writer = 1;                              // both write
    if (mpi.rank() == 1) options.attributes = {{"", "text"}};  // HDF5 refuses such a name
    try {
      write_rollouts(argv[1], MPI_COMM_WORLD, {&record, 1}, options);
    } catch (...) {
      if (std::filesystem::exists(part_path(argv[1]))) std::puts("the side file is left");
      throw;
    }
    return 0;
  });
}
