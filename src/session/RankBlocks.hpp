// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "session/Ranks.hpp"
#include "shard/ModelLayout.hpp"

namespace taper {

// A model's layout, and its ranks as those that are there know them.
struct ModelPlace {
  ModelLayout layout;
  const Ranks* ranks = nullptr;  // null if this rank is none of them

  // Null if this rank is none of them.
  const Group* group() const { return ranks == nullptr ? nullptr : &ranks->world(); }
  const Group* replica() const {
    return ranks == nullptr ? nullptr : &ranks->groups.tp_group(layout.grid.tp);
  }
};

// On all ranks, in replicas of `tp`.
ModelPlace place_on_all(const Ranks& ranks, int tp);

// The blocks of ranks that models of a job are on: all ranks, and those of some sizes. Of each size
// a rank is in one block, and has that one's groups.
class RankBlocks {
 public:
  // Every size is a degree of the chain of the ranks, which must outlive this object. Collective
  // over the ranks.
  RankBlocks(const Ranks& all, const std::vector<int>& sizes);

  const Ranks& all() const { return *all_; }
  // Null if this rank is not in the block. Not collective.
  const Ranks* find(const RankBlock& block) const;
  bool has(const RankBlock& block) const { return block.has(all_->rank()); }
  ModelPlace place(const ModelLayout& layout) const { return {layout, find(layout.ranks())}; }

 private:
  const Ranks* all_;
  std::map<int, std::unique_ptr<Ranks>> blocks_;  // by size
};

}  // namespace taper
