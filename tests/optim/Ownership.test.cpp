// SPDX-License-Identifier: Apache-2.0
#include "optim/Ownership.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

ModelConfig small_config() {
  ModelConfig c;
  c.layers = 2;
  c.hidden = 64;
  c.heads = 6;
  c.kv_heads = 3;
  c.head_dim = 16;
  c.intermediate = 200;
  c.vocab = 331;
  c.max_positions = 128;
  return c;
}

}  // namespace

TEST_CASE("replicas own contiguous stretches of nearly equal length that tile the shard") {
  const ParamTable table(small_config());
  for (const int tp : {1, 2, 3}) {
    const LocalParams local(table, ModelShard(table, tp, tp - 1));
    std::int64_t largest_piece = 0;
    for (const auto& piece : local.pieces()) largest_piece = std::max(largest_piece, piece.size);
    for (const int dp : {1, 2, 3, 7}) {
      const StateShards shards(local, dp);
      REQUIRE(shards.offsets().front() == 0);
      REQUIRE(shards.offsets().back() == local.size());
      // Each cut is at most half a piece from where it would be without pieces; 1 is for rounding.
      for (int d = 0; d < dp; ++d)
        CHECK(std::abs(shards.size(d) - local.size() / dp) <= largest_piece + 1);
      for (const auto& piece : local.pieces()) {
        const int owner = shards.owner(piece.offset);
        CHECK(shards.begin(owner) <= piece.offset);
        CHECK(piece.offset + piece.size <= shards.begin(owner) + shards.size(owner));
      }
    }
  }
}

TEST_CASE("every piece has an owner in every layout, and owners hold what they own") {
  const ParamTable table(small_config());
  const DivisorChain chain({1, 3, 6});
  for (const RankGrid grid : {RankGrid{1, 6}, RankGrid{3, 2}}) {
    const Ownership owners = owned_pieces(table, chain, {0, grid}),
                    holders = held_pieces(table, chain, {0, grid});
    for (int p = 0; p < table.pieces(); ++p) {
      REQUIRE(!owners[p].empty());
      REQUIRE(std::is_sorted(owners[p].begin(), owners[p].end()));
      for (const int rank : owners[p])
        CHECK(std::binary_search(holders[p].begin(), holders[p].end(), rank));
      const bool replicated =
          table.tensors()[table.tensor_of_piece(p)].kind == ShardKind::kReplicated;
      CHECK(owners[p].size() == (replicated ? static_cast<std::size_t>(grid.tp) : 1u));
    }
  }
}
