// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/ModelShard.hpp"
#include "shard/ModelLayout.hpp"
#include "shard/ReshapePlan.hpp"

namespace taper {

// Which pieces of a tensor-parallel shard each data-parallel rank updates (ZeRO stage 1): a stretch
// of the flat local parameters, cut at pieces, of nearly equal length.
class StateShards {
 public:
  StateShards(const LocalParams& local, int dp_size);

  // dp_size + 1 ascending flat offsets.
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  std::int64_t begin(int dp_rank) const { return offsets_[dp_rank]; }
  std::int64_t size(int dp_rank) const { return offsets_[dp_rank + 1] - offsets_[dp_rank]; }
  // The data-parallel rank that owns the element at a flat offset.
  int owner(std::int64_t offset) const;

 private:
  std::vector<std::int64_t> offsets_;
};

// For every piece of a model that is trained in the layout, the ranks of the chain whose optimizer
// owns it.
Ownership owned_pieces(const ParamTable& table, const DivisorChain& chain,
                       const ModelLayout& layout);
// For every piece, the ranks that hold it as a weight of a model in the layout; not those
// `without`.
Ownership held_pieces(const ParamTable& table, const DivisorChain& chain, const ModelLayout& layout,
                      const RankBlock& without = {0, 0});

}  // namespace taper
