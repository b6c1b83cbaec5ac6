// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "comm/Group.hpp"
#include "comm/TreeReduce.hpp"
#include "kernels/Staging.hpp"
#include "kernels/product.hpp"
#include "model/ModelShard.hpp"
#include "shard/ReductionTree.hpp"

namespace taper {

// What a model's layers need to know about the ranks they are sharded over, an argument of every
// call: the group and the order in which partial sums are added. One object per layout, made from a
// cached group.
class ModelParallel {
 public:
  // `group` must outlive this object; group.rank() is the shard index.
  ModelParallel(const ParamTable& table, const Group& group);

  const Group& group() const { return *group_; }
  const ModelShard& shard() const { return shards_[group_->rank()]; }
  // The shard of another rank of the group.
  const ModelShard& shard(int rank) const { return shards_[rank]; }

  // Leaves of the attention output (query heads) and of the MLP down projection (blocks of 64) of
  // this shard.
  const LeafOrder& attention_leaves() const { return attention_leaves_; }
  const LeafOrder& mlp_leaves() const { return mlp_leaves_; }
  const TreeReducer& attention_sum() const { return attention_sum_; }
  const TreeReducer& mlp_sum() const { return mlp_sum_; }
  // Of values that every rank has.
  const TreeReducer& rank_sum() const { return rank_sum_; }

 private:
  const Group* group_;
  std::vector<ModelShard> shards_;
  Staged<int> attention_program_, mlp_program_;
  LeafOrder attention_leaves_, mlp_leaves_;
  TreeReducer attention_sum_, mlp_sum_, rank_sum_;
};

}  // namespace taper
