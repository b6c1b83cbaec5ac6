// SPDX-License-Identifier: Apache-2.0
#include "optim/Ownership.hpp"

#include <algorithm>

namespace taper {

StateShards::StateShards(const LocalParams& local, int dp_size) {
  offsets_.push_back(0);
  std::size_t piece = 0;
  const auto& pieces = local.pieces();
  for (int d = 1; d < dp_size; ++d) {
    const std::int64_t target = local.size() * d / dp_size;
    while (piece < pieces.size() && pieces[piece].offset + pieces[piece].size / 2 < target) ++piece;
    offsets_.push_back(
        std::max(offsets_.back(), piece < pieces.size() ? pieces[piece].offset : local.size()));
  }
  offsets_.push_back(local.size());
}

int StateShards::owner(std::int64_t offset) const {
  const auto next = std::upper_bound(offsets_.begin(), offsets_.end() - 1, offset);
  return static_cast<int>(next - offsets_.begin()) - 1;
}

Ownership owned_pieces(const ParamTable& table, const DivisorChain& chain,
                       const ModelLayout& layout) {
  const auto& [first, grid] = layout;
  Ownership owners(table.pieces());
  for (int rank = first; rank < layout.ranks().end(); ++rank) {
    const LocalParams local(table, ModelShard(table, grid.tp, chain.shard_index(rank, grid.tp)));
    const StateShards shards(local, grid.dp);
    for (const auto& piece : local.pieces())
      if (shards.owner(piece.offset) == grid.replica_of(rank - first))
        owners[piece.id].push_back(rank);
  }
  return owners;
}

Ownership held_pieces(const ParamTable& table, const DivisorChain& chain, const ModelLayout& layout,
                      const RankBlock& without) {
  const int tp = layout.grid.tp;
  Ownership holders(table.pieces());
  for (int rank = layout.first; rank < layout.ranks().end(); ++rank) {
    if (without.has(rank)) continue;
    const LocalParams local(table, ModelShard(table, tp, chain.shard_index(rank, tp)));
    for (const auto& piece : local.pieces()) holders[piece.id].push_back(rank);
  }
  return holders;
}

}  // namespace taper
