// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/TestRanks.hpp"

namespace taper::test {

// The block of ranks that this one is in, where the lower half is one and the upper half the other.
// A single rank is an upper half.
struct Half {
  int first = 0;
  int size = 1;

  explicit Half(int rank) {
    const int lower = world_size() / 2;
    first = rank < lower ? 0 : lower;
    size = rank < lower ? lower : world_size() - lower;
  }
  bool is_upper() const { return first == world_size() / 2; }
};

// A communicator with the ranks of a half alone: what a job of as many ranks has for its world.
// Collective over the world.
struct WorldOfHalf {
  explicit WorldOfHalf(const Half& half) { MPI_Comm_split(MPI_COMM_WORLD, half.first, 0, &comm); }
  ~WorldOfHalf() { MPI_Comm_free(&comm); }
  WorldOfHalf(const WorldOfHalf&) = delete;
  WorldOfHalf& operator=(const WorldOfHalf&) = delete;

  MPI_Comm comm = MPI_COMM_NULL;
};

}  // namespace taper::test
