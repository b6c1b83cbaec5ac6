// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/ModelShard.hpp"
#include "shard/RankGrid.hpp"
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

// For every piece of the model, the world ranks whose optimizer owns it under the training layout.
Ownership owned_pieces(const ParamTable& table, const DivisorChain& chain, const RankGrid& grid);
// For every piece, the world ranks that hold it as a weight in a uniform layout.
Ownership held_pieces(const ParamTable& table, const DivisorChain& chain, const RankGrid& grid);

}  // namespace taper
