// SPDX-License-Identifier: Apache-2.0
#include "model/ModelParallel.hpp"

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

}  // namespace

ModelParallel::ModelParallel(const ParamTable& table, const Group& group)
    : group_(&group),
      shards_(make_shards(table, group.size())),
      attention_program_(staged(attention_tree(table).local_program(shard().heads()))),
      mlp_program_(staged(ReductionTree(table.mlp_blocks(), 1).local_program(shard().blocks()))),
      key_value_program_(staged(key_value_program(table, shards_, shard().kv_heads()))),
      vocabulary_program_(
          staged(ReductionTree(table.vocab_blocks(), 1).local_program(shard().vocab()))),
      attention_{{}, {attention_tree(table), ranges(shards_, ShardKind::kHeads)}},
      mlp_{{}, {ReductionTree(table.mlp_blocks(), 1), ranges(shards_, ShardKind::kMlpBlocks)}},
      key_value_input_{{}, key_value_sum(table, shards_)},
      gate_up_input_{{}, mlp_.sum},
      head_input_{{},
                  {ReductionTree(table.vocab_blocks(), 1), ranges(shards_, ShardKind::kVocab)}} {
  const ModelConfig& c = table.config();
  const auto leaves = [&](const Staged<int>& program, const TreeReducer& sum, int stride, int k,
                          int last_k) {
    return LeafOrder{static_cast<int>(program.size()), stride, k, last_k, program.data(),
                     sum.partials(group.rank())};
  };
  const int pad = table.head_pad();
  const bool has_last = shard().blocks().end == table.mlp_blocks();
  const int last = c.intermediate - (table.mlp_blocks() - 1) * kMlpBlock;
  attention_.leaves = leaves(attention_program_, attention_.sum, pad, c.head_dim, c.head_dim);
  mlp_.leaves = leaves(mlp_program_, mlp_.sum, kMlpBlock, kMlpBlock, has_last ? last : kMlpBlock);
  key_value_input_.leaves =
      leaves(key_value_program_, key_value_input_.sum, 2 * pad, 2 * pad, 2 * pad);
  gate_up_input_.leaves =
      leaves(mlp_program_, gate_up_input_.sum, 2 * kMlpBlock, 2 * kMlpBlock, 2 * kMlpBlock);
  head_input_.leaves =
      leaves(vocabulary_program_, head_input_.sum, kVocabBlock, kVocabBlock, kVocabBlock);
}

void ModelParallel::multiply(const Exec& exec, const PackedMatrix& weights, const RowParallel& by,
                             FloatMatrix out, ConstFloatMatrix input, float* partials,
                             float* workspace) const {
  if (group_->is_null()) return multiply_leaves(exec, out, input, weights, by.leaves);
  const FloatMatrix sums(partials, by.leaves.partials * out.extent(0), out.extent(1));
  multiply_leaves(exec, sums, input, weights, by.leaves);
  tree_sum(exec, by.sum, *group_, out, partials, workspace);
}

}  // namespace taper
