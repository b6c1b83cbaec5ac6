// SPDX-License-Identifier: Apache-2.0
#include "comm/Wait.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"
#include "comm/Affinity.hpp"
#include "comm/MpiCall.hpp"

using namespace taper;

TEST_CASE("a mode that is given stays") {
  CHECK(resolve_wait_mode(WaitMode::kBlock, MPI_COMM_WORLD) == WaitMode::kBlock);
  CHECK(resolve_wait_mode(WaitMode::kYield, MPI_COMM_WORLD) == WaitMode::kYield);
}

TEST_CASE("auto yields exactly where ranks outnumber cores, and equally on all ranks") {
  const auto mode = resolve_wait_mode(WaitMode::kAuto, MPI_COMM_WORLD);
  CHECK(mode != WaitMode::kAuto);
  int mine = mode == WaitMode::kYield ? 1 : 0, least = mine, most = mine;
  MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  CHECK(least == most);

  // All ranks of the tests run on one host.
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 1) CHECK(mode == WaitMode::kBlock);
  if (ranks > 1 && affinity_cores().size() == 1) CHECK(mode == WaitMode::kYield);
  CHECK(is_oversubscribed(3, 2));
  CHECK_FALSE(is_oversubscribed(2, 2));
}

TEST_CASE("yielding waits for all requests") {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  std::array<int, 3> sent{rank, 10 * rank, 100 * rank}, received{-1, -1, -1};
  std::array<MPI_Request, 6> requests;
  for (int i = 0; i < 3; ++i) {
    MPI_Irecv(&received[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD, &requests[2 * i]);
    MPI_Isend(&sent[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
  }
  yield_until_done(requests);
  CHECK(received == std::array<int, 3>{previous, 10 * previous, 100 * previous});
  for (const auto request : requests) CHECK(request == MPI_REQUEST_NULL);
  yield_until_done({});
}
