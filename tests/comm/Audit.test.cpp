// SPDX-License-Identifier: Apache-2.0
#include "comm/Audit.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("equal collectives pass") {
  const Group world = Group::world(MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) {
    CHECK_NOTHROW(detail::check_same_collective(world, "all_gather", 12, 64, -1));
    CHECK_NOTHROW(detail::check_same_collective(world, "broadcast", 13, 64, 0));
  }
}

TEST_CASE("the ranks that differ are named, on every rank") {
  const Group world = Group::world(MPI_COMM_WORLD);
  if (world.size() < 3) return;  // of two ranks neither is the odd one
  const bool odd = world.rank() == 1;
  CHECK_THROWS_MATCHES(
      detail::check_same_collective(world, odd ? "barrier" : "all_gather", odd ? 8 : 7, 64, -1),
      Error,
      MessageMatches(ContainsSubstring("all_gather number 7") &&
                     ContainsSubstring("; rank 1 is in barrier number 8") &&
                     !ContainsSubstring("rank 0 is in")));
}

TEST_CASE("number, name, count and root must agree") {
  const Group world = Group::world(MPI_COMM_WORLD);
  if (world.is_null()) return;
  const int me = world.rank();
  CHECK_THROWS_AS(detail::check_same_collective(world, "barrier", 7 + me, 0, -1), Error);
  CHECK_THROWS_AS(detail::check_same_collective(world, me == 0 ? "a" : "b", 7, 0, -1), Error);
  CHECK_THROWS_AS(detail::check_same_collective(world, "barrier", 7, me, -1), Error);
  CHECK_THROWS_AS(detail::check_same_collective(world, "barrier", 7, 0, me), Error);
}

#ifdef TAPER_AUDIT
TEST_CASE("audit builds check every collective before it starts") {
  const Group world = Group::world(MPI_COMM_WORLD);
  if (world.is_null()) return;
  std::vector<float> data(world.rank() == 0 ? 3 : 4);
  CHECK_THROWS_AS(all_reduce_max(world, data), Error);
  CHECK_NOTHROW(barrier(world));
}
#endif
