// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <vector>

#include "device/Runtime.hpp"
#include "session/Ranks.hpp"

namespace taper::test {

inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// The ranks of a test, with the tensor-parallel groups of the given degrees and what lies between
// them: by default all ranks of the world. Collective over comm.
struct TestRanks {
  explicit TestRanks(const std::vector<int>& degrees = {}, MPI_Comm comm = MPI_COMM_WORLD,
                     int size = world_size())
      : ranks(comm, size, degrees, progress) {
    set_float_mode();
  }
  Progress progress;
  Ranks ranks;
};

}  // namespace taper::test
