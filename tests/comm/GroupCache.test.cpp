// SPDX-License-Identifier: Apache-2.0
#include "comm/GroupCache.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"

using namespace taper;

namespace {

struct World {
  int rank = 0, ranks = 1;
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  }
};

// The members that a group really reaches, in the order of their group ranks.
std::vector<int> reached(const Group& group) {
  std::vector<int> members(static_cast<std::size_t>(group.size()));
  all_gather(group, members, std::vector{group.world_rank()});
  return members;
}

std::vector<int> list_with(const GroupCache::RankLists& lists, int rank) {
  return *std::find_if(lists.begin(), lists.end(),
                       [&](const std::vector<int>& list) { return index_of(list, rank) >= 0; });
}

}  // namespace

TEST_CASE("rounds are disjoint and keep every list once") {
  const GroupCache::RankLists lists{{0, 1}, {2, 3}, {0, 2}, {3, 1}, {0, 1}, {1}, {3, 2, 1, 0}};
  const auto rounds = creation_rounds(lists, 4);
  REQUIRE(rounds.size() == 3);
  CHECK(rounds[0] == GroupCache::RankLists{{0, 1}, {2, 3}});
  CHECK(rounds[1] == GroupCache::RankLists{{0, 2}, {3, 1}});
  CHECK(rounds[2] == GroupCache::RankLists{{3, 2, 1, 0}});
}

TEST_CASE("rounds grow with the length of the chain, not with the ranks") {
  const auto rounds_of = [](int ranks) {
    const auto chain = DivisorChain::of(ranks);
    GroupCache::RankLists all;
    for (const int degree : chain.degrees()) {
      for (const auto& list : tp_rank_lists(chain, degree)) all.push_back(list);
      for (const auto& list : dp_rank_lists(chain, degree)) all.push_back(list);
    }
    return creation_rounds(all, ranks).size();
  };
  CHECK(rounds_of(8) <= 8);
  CHECK(rounds_of(1024) <= 22);
}

TEST_CASE("bad lists are refused") {
  CHECK_THROWS_AS(creation_rounds({{}}, 4), Error);
  CHECK_THROWS_AS(creation_rounds({{0, 0}}, 4), Error);
  CHECK_THROWS_AS(creation_rounds({{0, 4}}, 4), Error);
  CHECK_THROWS_AS(creation_rounds({{-1, 0}}, 4), Error);
  CHECK_THROWS_AS(creation_rounds({{7}}, 4), Error);
}

TEST_CASE("without MPI there is one rank and no communicator") {
  const auto cache = GroupCache::for_chain(MPI_COMM_NULL, DivisorChain::of(1));
  CHECK(cache.count() == 0);
  CHECK(cache.world().is_null());
  CHECK(cache.tp_group(1).is_null());
  CHECK(cache.dp_group(1).is_null());
}

TEST_CASE("lists of any order become groups in that order") {
  const World world;
  std::vector<int> reversed, evens;
  for (int r = world.ranks - 1; r >= 0; --r) reversed.push_back(r);
  for (int r = 0; r < world.ranks; r += 2) evens.push_back(r);
  const GroupCache cache(MPI_COMM_WORLD, {reversed, evens, reversed});
  CHECK(reached(cache.world()) == cache.world().world_ranks());
  CHECK(reached(cache.group(reversed)) == reversed);
  CHECK(cache.group(reversed).rank() == world.ranks - 1 - world.rank);
  if (world.rank % 2 == 0) {
    CHECK(reached(cache.group(evens)) == evens);
  } else if (evens != cache.world().world_ranks()) {
    CHECK_FALSE(cache.has(evens));
    CHECK_THROWS_AS(cache.group(evens), Error);
  }
  CHECK(cache.group({world.rank}).is_null());
  CHECK_THROWS_AS(cache.group({0, 1, 2, 3, 4, 5, 6, 7}), Error);
}

TEST_CASE("the groups of a chain are those of the divisor chain, at every degree") {
  const World world;
  const auto chain = DivisorChain::of(world.ranks);
  const auto cache = GroupCache::for_chain(MPI_COMM_WORLD, chain);
  for (const int degree : chain.degrees()) {
    const Group& tp = cache.tp_group(degree);
    CHECK(tp.size() == degree);
    CHECK(tp.rank() == chain.shard_index(world.rank, degree));
    CHECK(reached(tp) == chain.group(degree, world.rank / degree));

    const Group& dp = cache.dp_group(degree);
    CHECK(dp.size() == world.ranks / degree);
    CHECK(dp.rank() == world.rank / degree);
    for (const int peer : reached(dp)) {
      CHECK(chain.shard_index(peer, degree) == tp.rank());
    }
  }
  CHECK_THROWS_AS(cache.tp_group(5), Error);
  CHECK_THROWS_AS(cache.dp_group(5), Error);
}

TEST_CASE("nothing is created after the start") {
  const World world;
  const auto chain = DivisorChain::of(world.ranks);
  const auto cache = GroupCache::for_chain(MPI_COMM_WORLD, chain);
  const int count = cache.count();
  if (world.ranks <= 4) {
    // World and the full TP group coincide if digit reversal changes nothing (1, 2, 3 ranks).
    const std::vector<int> communicators{0, 0, 1, 1, 4};
    CHECK(count == communicators[static_cast<std::size_t>(world.ranks)]);
  }
  std::vector<const Group*> first;
  for (const int degree : chain.degrees())
    first.insert(first.end(), {&cache.tp_group(degree), &cache.dp_group(degree)});
  for (int i = 0; i < 3; ++i) {
    std::size_t at = 0;
    for (const int degree : chain.degrees()) {
      CHECK(&cache.tp_group(degree) == first[at]);
      CHECK(&cache.group(list_with(tp_rank_lists(chain, degree), world.rank)) == first[at++]);
      CHECK(&cache.dp_group(degree) == first[at]);
      CHECK(&cache.group(list_with(dp_rank_lists(chain, degree), world.rank)) == first[at++]);
    }
  }
  CHECK(cache.count() == count);
}

TEST_CASE("a chain that does not cover the ranks is refused") {
  CHECK_THROWS_AS(GroupCache::for_chain(MPI_COMM_WORLD, DivisorChain::of(64)), Error);
}

TEST_CASE("caches give their communicators back") {
  // MPICH has 2048 of them. Two ranks only: creation is slow if ranks share cores.
  const World world;
  if (world.ranks != 2) SKIP("caches are created over and over on two ranks only");
  for (int i = 0; i < 2500; ++i)
    CHECK_NOTHROW(GroupCache(MPI_COMM_WORLD, {}, {.wait = WaitMode::kBlock}));
}
