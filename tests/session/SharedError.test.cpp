// SPDX-License-Identifier: Apache-2.0
#include "session/SharedError.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace taper;

namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// Asks on all ranks at about the same time: they wait for rank 0 for a moment only.
bool is_said(const std::string& text) {
  MPI_Barrier(MPI_COMM_WORLD);
  return is_said_by_rank_0(text, ExitCode::kBadInput);
}

}  // namespace

TEST_CASE("what all ranks have to say is said by rank 0") {
  for (int i = 0; i < 3; ++i)
    CHECK(is_said("Rollout/Prompts is " + std::to_string(i)) == (world_rank() != 0));
}

TEST_CASE("a rank that has something else to say says it") {
  const int rank = world_rank();
  CHECK_FALSE(is_said("this is rank " + std::to_string(rank)));
  // Ranks with the text of rank 0 are silent, rank 1 is not.
  CHECK(is_said(rank == 1 ? "rank 1" : "the others") == (rank > 1));
}

TEST_CASE("a rank that fails alone is not silenced, and waits for nobody") {
  if (world_rank() == 1) CHECK_FALSE(is_said_by_rank_0("alone", ExitCode::kFailure));
  MPI_Barrier(MPI_COMM_WORLD);
}
