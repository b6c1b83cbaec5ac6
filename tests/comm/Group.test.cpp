// SPDX-License-Identifier: Apache-2.0
#include "comm/Group.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "comm/MpiCall.hpp"

using namespace taper;

static_assert(!std::is_copy_constructible_v<Group>);
static_assert(std::is_nothrow_move_constructible_v<Group>);

TEST_CASE("the group of this process alone needs nobody") {
  const Group self = Group::self(5);
  CHECK(self.is_null());
  CHECK(self.size() == 1);
  CHECK(self.rank() == 0);
  CHECK(self.world_rank() == 5);
  CHECK(self.index_of(5) == 0);
  CHECK(self.index_of(0) == -1);
  CHECK(self.comm() == MPI_COMM_SELF);
}

TEST_CASE("the world lists all ranks in order") {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Group world = Group::world(MPI_COMM_WORLD);
  CHECK(world.rank() == rank);
  CHECK(world.size() == ranks);
  CHECK(world.world_rank() == rank);
  std::vector<int> expected(static_cast<std::size_t>(ranks));
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(world.world_ranks() == expected);
  CHECK(world.wait() != WaitMode::kAuto);
}

TEST_CASE("the ranks of a node are listed in their order") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const Group node = Group::of_node(world);
  CHECK(std::ranges::is_sorted(node.world_ranks()));
  CHECK(node.world_rank() == world.rank());
  std::vector<int> first{node.world_ranks().front()};
  broadcast(node, first, 0);
  CHECK(first[0] == node.world_ranks().front());
}

TEST_CASE("a block numbers its ranks from 0 and reaches no others") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const int ranks = world.size(), rank = world.rank();
  for (int cut = 0; cut < ranks; ++cut) {
    const int first = rank < cut ? 0 : cut, size = rank < cut ? cut : ranks - cut;
    const Group block = Group::block(MPI_COMM_WORLD, first, size, world.options());
    CHECK(block.size() == size);
    CHECK(block.rank() == rank - first);
    CHECK(block.world_rank() == rank - first);
    std::vector<int> members(static_cast<std::size_t>(size)), expected(members);
    all_gather(block, members, std::vector{rank});
    std::iota(expected.begin(), expected.end(), first);
    CHECK(members == expected);
  }
}

TEST_CASE("a block that ranks outside of it give as theirs is refused") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const auto make = [&](int first, int size) {
    return Group::block(MPI_COMM_WORLD, first, size, world.options());
  };
  CHECK_THROWS_AS(make(0, world.size() + 1), Error);
  CHECK_THROWS_AS(make(1, world.size()), Error);
  if (world.size() > 1) CHECK_THROWS_AS(make(0, 1), Error);
}

TEST_CASE("an owning group moves and frees its communicator once") {
  const Group world = Group::world(MPI_COMM_WORLD);
  GroupOptions options;
  options.wait = world.wait();
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  Group first = Group::owning(copy, world.world_ranks(), options);
  Group second = std::move(first);
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  all_gather(second, all, std::vector{second.rank()});
  CHECK(all == world.world_ranks());
  first = std::move(second);
  CHECK(first.size() == world.size());
  CHECK(first.number() == (world.is_null() ? 0 : 1));
  first = Group::self();
  CHECK(first.is_null());
}

TEST_CASE("a communicator of another size is refused") {
  GroupOptions options;
  options.wait = WaitMode::kBlock;
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  CHECK_THROWS_AS(Group::owning(copy, {0, 1, 2, 3, 4, 5, 6}, options), Error);
  MPI_Comm_free(&copy);
}
