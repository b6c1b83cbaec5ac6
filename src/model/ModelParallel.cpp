// SPDX-License-Identifier: Apache-2.0
#include "model/ModelParallel.hpp"

#include <algorithm>

#include "kernels/fused.hpp"
#include "model/DeviceCollectives.hpp"

namespace taper {
namespace {

std::vector<ModelShard> make_shards(const ParamTable& table, int degree) {
  std::vector<ModelShard> shards;
  for (int i = 0; i < degree; ++i) shards.emplace_back(table, degree, i);
  return shards;
}

std::vector<Range> ranges(const std::vector<ModelShard>& shards, ShardKind kind) {
  std::vector<Range> list;
  for (const auto& shard : shards) list.push_back(shard.units(kind));
  return list;
}

// Query heads are the leaves, KV heads the units.
ReductionTree attention_tree(const ParamTable& table) {
  const ModelConfig& c = table.config();
  return {c.kv_heads, c.heads / c.kv_heads};
}

// Shards that share KV heads each bring a sum over theirs, as far as their query heads read them.
bool shares_kv_heads(const ParamTable& table, const std::vector<ModelShard>& shards) {
  return static_cast<int>(shards.size()) > table.config().kv_heads;
}

std::vector<int> key_value_program(const ParamTable& table, const std::vector<ModelShard>& shards,
                                   Range heads) {
  if (!shares_kv_heads(table, shards))
    return ReductionTree(table.config().kv_heads, 1).local_program(heads);
  return ReductionTree(heads.size(), 1).local_program({0, heads.size()});
}

TreeReducer key_value_sum(const ParamTable& table, const std::vector<ModelShard>& shards) {
  if (shares_kv_heads(table, shards))
    return TreeReducer::over_ranks(static_cast<int>(shards.size()));
  return {ReductionTree(table.config().kv_heads, 1), ranges(shards, ShardKind::kKvHeads)};
}

// The blocks of the MLP or of the vocabulary, `width` of which are a leaf.
struct Blocks {
  ShardKind kind;
  int all, width;

  ReductionTree tree() const { return {leaves_of({0, all}, width).end, 1}; }
  Staged<int> program(const ModelShard& shard) const {
    return staged(tree().local_program(leaves_of(shard.units(kind), width)));
  }
  TreeReducer sum(const std::vector<ModelShard>& shards) const {
    std::vector<Range> list;
    for (const Range units : ranges(shards, kind)) list.push_back(leaves_of(units, width));
    return {tree(), list};
  }
};

Blocks mlp_of(const ParamTable& table, Arithmetic arithmetic) {
  const int width = rounds_operands(arithmetic) ? table.leaf_blocks().mlp : 1;
  return {ShardKind::kMlpBlocks, table.mlp_blocks(), width};
}
Blocks vocabulary_of(const ParamTable& table, Arithmetic arithmetic) {
  const int width = rounds_operands(arithmetic) ? table.leaf_blocks().vocab : 1;
  return {ShardKind::kVocab, table.vocab_blocks(), width};
}

}  // namespace

ModelParallel::ModelParallel(const ParamTable& table, const Group& group, Arithmetic arithmetic)
    : group_(&group),
      shards_(make_shards(table, group.size())),
      attention_program_(staged(attention_tree(table).local_program(shard().heads()))),
      mlp_program_(mlp_of(table, arithmetic).program(shard())),
      key_value_program_(staged(key_value_program(table, shards_, shard().kv_heads()))),
      vocabulary_program_(vocabulary_of(table, arithmetic).program(shard())),
      attention_{{}, {attention_tree(table), ranges(shards_, ShardKind::kHeads)}},
      mlp_{{}, mlp_of(table, arithmetic).sum(shards_)},
      key_value_input_{{}, key_value_sum(table, shards_)},
      gate_up_input_{{}, mlp_.sum},
      head_input_{{}, vocabulary_of(table, arithmetic).sum(shards_)} {
  const ModelConfig& c = table.config();
  const auto leaves = [&](const Staged<int>& program, const TreeReducer& sum, int k, int last_k) {
    return LeafOrder{static_cast<int>(program.size()), k, k, last_k, program.data(),
                     sum.partials(group.rank())};
  };
  // By blocks of so many inputs, `inputs` in all.
  const auto block_leaves = [&](const Blocks& blocks, const Staged<int>& program,
                                const TreeReducer& sum, int block, int inputs) {
    const Range held = shard().units(blocks.kind);
    const int k = blocks.width * block, last = leaves_of(held, blocks.width).end - 1;
    return leaves(program, sum, k, std::min(held.end * block, inputs) - last * k);
  };
  const Blocks mlp = mlp_of(table, arithmetic), vocabulary = vocabulary_of(table, arithmetic);
  const int pad = table.head_pad();
  attention_.leaves = leaves(attention_program_, attention_.sum, pad, pad);
  attention_.leaves.leaf_k = attention_.leaves.last_leaf_k = c.head_dim;
  key_value_input_.leaves = leaves(key_value_program_, key_value_input_.sum, 2 * pad, 2 * pad);
  mlp_.leaves = block_leaves(mlp, mlp_program_, mlp_.sum, kMlpBlock, c.intermediate);
  gate_up_input_.leaves =
      block_leaves(mlp, mlp_program_, mlp_.sum, 2 * kMlpBlock, 2 * kMlpBlock * table.mlp_blocks());
  head_input_.leaves = block_leaves(vocabulary, vocabulary_program_, head_input_.sum, kVocabBlock,
                                    kVocabBlock * table.vocab_blocks());
}

void ModelParallel::multiply(const Exec& exec, const PackedMatrix& weights, const RowParallel& by,
                             FloatMatrix out, ConstFloatMatrix input, float* partials,
                             float* workspace) const {
  if (group_->is_null()) return multiply_leaves(exec, out, input, weights, by.leaves);
  const FloatMatrix sums(partials, by.leaves.partials * out.extent(0), out.extent(1));
  multiply_leaves(exec, sums, input, weights, by.leaves);
  tree_sum(exec, by.sum, *group_, out, partials, workspace);
}

void ModelParallel::multiply_and_add(const Exec& exec, const PackedMatrix& weights,
                                     const RowParallel& by, FloatMatrix out, ConstFloatMatrix x,
                                     ConstFloatMatrix input, float* partials, FloatMatrix total,
                                     float* workspace) const {
  if (group_->is_null())
    return multiply_leaves_and_add(exec, out, x, input, weights, by.leaves, partials);
  const FloatMatrix sums(partials, by.leaves.partials * out.extent(0), out.extent(1));
  multiply_leaves(exec, sums, input, weights, by.leaves);
  tree_sum_and_add(exec, by.sum, *group_, out, x, partials, total, workspace);
}

}  // namespace taper
