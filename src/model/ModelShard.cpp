// SPDX-License-Identifier: Apache-2.0
#include "model/ModelShard.hpp"

#include <algorithm>
#include <string>

#include "base/Error.hpp"

namespace taper {

namespace {

int mlp_leaves(const ParamTable& table) {
  return leaves_of({0, table.mlp_blocks()}, table.leaf_blocks().mlp).end;
}
int vocab_leaves(const ParamTable& table) {
  return leaves_of({0, table.vocab_blocks()}, table.leaf_blocks().vocab).end;
}

// Shard `index` of so many blocks, which ends with a leaf.
Range blocks_of_shard(int blocks, int width, int degree, int index) {
  const Range leaves = shard_range(leaves_of({0, blocks}, width).end, degree, index);
  return {leaves.begin * width, std::min(leaves.end * width, blocks)};
}

}  // namespace

int largest_degree(const ParamTable& table) {
  return std::min({table.config().heads, mlp_leaves(table), vocab_leaves(table)});
}

int shard_of_id(const ParamTable& table, int degree, int id) {
  return shard_of_unit(vocab_leaves(table), degree, id / kVocabBlock / table.leaf_blocks().vocab);
}

ModelShard::ModelShard(const ParamTable& table, int degree, int index)
    : degree_(degree), index_(index) {
  const ModelConfig& c = table.config();
  const auto need = [&](int units, const std::string& what) {
    TAPER_VALIDATE(degree <= units, "tensor-parallel degree "
                                        << degree << " (the model has only " << units << ' ' << what
                                        << " to share out); choose at most " << units);
  };
  const LeafBlocks& width = table.leaf_blocks();
  need(c.heads, "query heads");
  need(mlp_leaves(table), "blocks of " + std::to_string(width.mlp * kMlpBlock) + " MLP columns");
  need(vocab_leaves(table),
       "blocks of " + std::to_string(width.vocab * kVocabBlock) + " vocabulary rows");
  if (degree <= c.kv_heads) {
    const int group = c.heads / c.kv_heads;
    kv_heads_ = shard_range(c.kv_heads, degree, index);
    heads_ = {kv_heads_.begin * group, kv_heads_.end * group};
  } else {  // cut at query heads: a KV head has several owners
    const int group = c.heads / c.kv_heads;
    heads_ = shard_range(c.heads, degree, index);
    kv_heads_ = {heads_.begin / group, (heads_.end + group - 1) / group};
  }
  blocks_ = blocks_of_shard(table.mlp_blocks(), width.mlp, degree, index);
  vocab_ = blocks_of_shard(table.vocab_blocks(), width.vocab, degree, index);
}

Range ModelShard::units(ShardKind kind) const {
  switch (kind) {
    case ShardKind::kReplicated:
      return {0, 1};
    case ShardKind::kHeads:
      return heads_;
    case ShardKind::kKvHeads:
      return kv_heads_;
    case ShardKind::kMlpBlocks:
      return blocks_;
    case ShardKind::kVocab:
      return vocab_;
  }
  return {};
}

int ModelShard::valid_vocab(int ids) const {
  return std::clamp(ids - vocab_.begin * kVocabBlock, 0, vocab_.size() * kVocabBlock);
}

LocalParams::LocalParams(const ParamTable& table, const ModelShard& shard) : table_(&table) {
  offsets_.push_back(0);
  for (std::size_t t = 0; t < table.tensors().size(); ++t) {
    const ParamTensor& tensor = table.tensors()[t];
    const Range units = shard.units(tensor.kind);
    units_.push_back(units);
    first_pieces_.push_back(pieces_.size());
    for (int u = units.begin; u < units.end; ++u)
      pieces_.push_back({table.first_piece(static_cast<int>(t)) + u,
                         offsets_.back() + (u - units.begin) * tensor.unit_size(),
                         tensor.unit_size()});
    offsets_.push_back(offsets_.back() + units.size() * tensor.unit_size());
  }
  first_pieces_.push_back(pieces_.size());
}

std::span<const LocalParams::Piece> LocalParams::pieces_of(int tensor) const {
  const std::size_t first = first_pieces_[tensor];
  return std::span(pieces_).subspan(first, first_pieces_[tensor + 1] - first);
}

std::int64_t LocalParams::rows(int tensor) const {
  return std::int64_t{units_[tensor].size()} * table_->tensors()[tensor].unit_rows;
}

}  // namespace taper
