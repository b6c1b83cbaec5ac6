// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "device/Arena.hpp"
#include "model/ParamTable.hpp"
#include "session/Ranks.hpp"
#include "shard/ModelLayout.hpp"
#include "shard/ReshapePlan.hpp"

namespace taper {

// Who keeps the packed weights of a model: ranks that hold the same shard keep one copy of it where
// they can share memory (session/MemoryDomains.hpp), and each packs some of the tensors for all of
// them. The same on all ranks.
class WeightShare {
 public:
  // Which ranks hold the model: those of the layout, less those `without`.
  struct Holders {
    ModelLayout layout;
    RankBlock without = {0, 0};
  };

  // `masters`: where values of the pieces come from, if it is from ranks. A tensor is packed where
  // most of it already is; otherwise tensors are dealt by size.
  WeightShare(const Ranks& ranks, const ParamTable& table, const Holders& holders,
              const Ownership& masters = {});

  // Whether any ranks keep weights together.
  bool is_shared() const;
  // How this rank, which holds the model, keeps them.
  MemoryShare memory() const;
  // Whether this rank packs the tensor, for itself and those that share with it.
  bool packs(int tensor) const;
  // For every piece, the ranks that pack it.
  Ownership packers() const;

 private:
  struct Copy {
    int memory_domain, shard;
    std::vector<int> ranks;    // that keep it, ascending
    std::vector<int> packers;  // by tensor: one of these
  };

  const ParamTable* table_;
  int tp_, rank_;
  std::vector<Copy> copies_;
  int own_ = -1;  // the copy of this rank; -1: it holds none
};

}  // namespace taper
