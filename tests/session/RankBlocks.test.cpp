// SPDX-License-Identifier: Apache-2.0
#include "session/RankBlocks.hpp"

#include <catch2/catch_test_macros.hpp>

#include "comm/Collectives.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("a block has the ranks and groups of its own") {
  const TestRanks world;
  const RankBlocks blocks(world.ranks, world.ranks.chain.degrees());
  const int me = world.ranks.rank();
  CHECK(blocks.find({0, world_size()}) == &world.ranks);
  for (const int size : world.ranks.chain.degrees())
    for (int first = 0; first < world_size(); first += size) {
      const Ranks* block = blocks.find({first, size});
      CHECK((block != nullptr) == (first <= me && me < first + size));
      CHECK(blocks.has({first, size}) == (block != nullptr));
      if (block == nullptr) continue;
      CHECK(block->size() == size);
      CHECK(block->rank() == me - first);
      // Shards are those of the world: what one block holds nests in what another one does.
      for (const int tp : block->chain.degrees())
        CHECK(block->chain.shard_index(block->rank(), tp) == world.ranks.chain.shard_index(me, tp));
      // Blocks do something else at the same time.
      std::vector<std::int64_t> sum{me};
      for (int i = 0; i <= first; ++i) {
        sum = {me};
        all_reduce_sum(block->world(), sum);
      }
      CHECK(sum.front() == std::int64_t{size} * first + size * (size - 1) / 2);
    }
}
