// SPDX-License-Identifier: Apache-2.0
#include "model/ModelShard.hpp"

#include <algorithm>

#include "base/Error.hpp"

namespace taper {

int largest_degree(const ParamTable& table) {
  return std::min({table.config().heads, table.mlp_blocks(), table.vocab_blocks()});
}

ModelShard::ModelShard(const ParamTable& table, int degree, int index)
    : degree_(degree), index_(index) {
  const ModelConfig& c = table.config();
  const auto need = [&](int units, const char* what) {
    TAPER_VALIDATE(degree <= units, "tensor-parallel degree "
                                        << degree << " (the model has only " << units << ' ' << what
                                        << " to share out); choose at most " << units);
  };
  need(c.heads, "query heads");
  need(table.mlp_blocks(), "blocks of 64 MLP columns");
  need(table.vocab_blocks(), "blocks of 64 vocabulary rows");
  if (degree <= c.kv_heads) {
    const int group = c.heads / c.kv_heads;
    kv_heads_ = shard_range(c.kv_heads, degree, index);
    heads_ = {kv_heads_.begin * group, kv_heads_.end * group};
  } else {  // cut at query heads: a KV head has several owners
    const int group = c.heads / c.kv_heads;
    heads_ = shard_range(c.heads, degree, index);
    kv_heads_ = {heads_.begin / group, (heads_.end + group - 1) / group};
  }
  blocks_ = shard_range(table.mlp_blocks(), degree, index);
  vocab_ = shard_range(table.vocab_blocks(), degree, index);
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
