// SPDX-License-Identifier: Apache-2.0
#include "model/ModelParallel.hpp"

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

ReductionTree mlp_tree(const ParamTable& table) {
  return {table.mlp_blocks(), 1};
}

}  // namespace

ModelParallel::ModelParallel(const ParamTable& table, const Group& group)
    : group_(&group),
      shards_(make_shards(table, group.size())),
      attention_program_(staged(attention_tree(table).local_program(shard().heads()))),
      mlp_program_(staged(mlp_tree(table).local_program(shard().blocks()))),
      attention_sum_(attention_tree(table), ranges(shards_, ShardKind::kHeads)),
      mlp_sum_(mlp_tree(table), ranges(shards_, ShardKind::kMlpBlocks)),
      rank_sum_(TreeReducer::over_ranks(group.size())) {
  const ModelConfig& c = table.config();
  attention_leaves_ = {shard().heads().size(),
                       table.head_pad(),
                       c.head_dim,
                       c.head_dim,
                       attention_program_.data(),
                       attention_sum_.partials(group.rank())};
  const bool has_last = shard().blocks().end == table.mlp_blocks();
  const int last = c.intermediate - (table.mlp_blocks() - 1) * kMlpBlock;
  mlp_leaves_ = {shard().blocks().size(),     kMlpBlock,           kMlpBlock,
                 has_last ? last : kMlpBlock, mlp_program_.data(), mlp_sum_.partials(group.rank())};
}

}  // namespace taper
