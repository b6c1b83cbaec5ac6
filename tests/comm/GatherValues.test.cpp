// SPDX-License-Identifier: Apache-2.0
#include "comm/GatherValues.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <utility>
#include <vector>

using namespace taper;

TEST_CASE("values of any kind come from all ranks, in rank order") {
  using Value = std::pair<std::string, std::vector<int>>;
  const Group world = Group::world(MPI_COMM_WORLD);
  const auto value_of = [](int rank) {
    return Value{"rank " + std::to_string(rank),
                 std::vector<int>(static_cast<std::size_t>(rank), 7)};
  };
  std::vector<Value> expected;
  for (int r = 0; r < world.size(); ++r) expected.push_back(value_of(r));
  CHECK(all_gather_values(world, value_of(world.rank())) == expected);
}
