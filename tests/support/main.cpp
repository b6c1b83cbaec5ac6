// SPDX-License-Identifier: Apache-2.0
//
// Test main: MPI, then Kokkos, then Catch2. A failing rank fails the test; an exception that
// escapes ends all ranks.
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <catch2/catch_session.hpp>

#include "base/Log.hpp"

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int rank = 0, ranks = 1, failed = 0, failed_anywhere = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  taper::set_log_rank(rank, ranks);
  {
    Kokkos::ScopeGuard kokkos(argc, argv);
    failed = Catch::Session().run(argc, argv);
  }
  MPI_Allreduce(&failed, &failed_anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed_anywhere;
}
