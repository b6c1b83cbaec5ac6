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
  ModelParallel(const ParamTable& table, const Group& group, Arithmetic arithmetic);
  // Leaves point into the programs of this object, which a move takes along and a copy would not.
  ModelParallel(const ModelParallel&) = delete;
  ModelParallel& operator=(const ModelParallel&) = delete;
  ModelParallel(ModelParallel&&) = default;
  ModelParallel& operator=(ModelParallel&&) = default;

  const Group& group() const { return *group_; }
  const ModelShard& shard() const { return shards_[group_->rank()]; }
  // The shard of another rank of the group.
  const ModelShard& shard(int rank) const { return shards_[rank]; }

  // A row-parallel product: the leaves of this shard, and the sum of all.
  struct RowParallel {
    LeafOrder leaves;
    TreeReducer sum;
  };
  // Of the forward pass, by query heads (also the gradient of the query product's input) and by
  // blocks of columns of the MLP, as many as LeafBlocks says.
  const RowParallel& attention() const { return attention_; }
  const RowParallel& mlp() const { return mlp_; }
  // Of the gradients of inputs: of the key and value product, by KV heads; of gate and up, by
  // blocks of the MLP; of the head, by blocks of the vocabulary.
  const RowParallel& key_value_input() const { return key_value_input_; }
  const RowParallel& gate_up_input() const { return gate_up_input_; }
  const RowParallel& head_input() const { return head_input_; }

  // out (rows, n) = the row-parallel product of `input`, summed over the group in tree order: the
  // same bits for any number of ranks. On a group of one it needs no memory, else `partials` for
  // by.leaves.partials results and `workspace` for by.sum. Collective over group().
  void multiply(const Exec& exec, const PackedMatrix& weights, const RowParallel& by,
                FloatMatrix out, ConstFloatMatrix input, float* partials, float* workspace) const;
  // out = x + that product, for which `total` has room; out may be x. On a group of one it needs
  // `partials` for one result, and neither total nor workspace. Collective over group().
  void multiply_and_add(const Exec& exec, const PackedMatrix& weights, const RowParallel& by,
                        FloatMatrix out, ConstFloatMatrix x, ConstFloatMatrix input,
                        float* partials, FloatMatrix total, float* workspace) const;

 private:
  const Group* group_;
  std::vector<ModelShard> shards_;
  Staged<int> attention_program_, mlp_program_, key_value_program_, vocabulary_program_;
  RowParallel attention_, mlp_, key_value_input_, gate_up_input_, head_input_;
};

}  // namespace taper
