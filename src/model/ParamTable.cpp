// SPDX-License-Identifier: Apache-2.0
#include "model/ParamTable.hpp"

#include <algorithm>

#include "kernels/Exec.hpp"
#include "kernels/product.hpp"

namespace taper {
namespace {

const char* role_name(ParamRole role) {
  static const char* const kNames[] = {"embedding",  "input_norm",     "query",      "query_bias",
                                       "key_value",  "key_value_bias", "query_norm", "key_norm",
                                       "output",     "post_norm",      "gate_up",    "down",
                                       "final_norm", "head",           "score"};
  return kNames[static_cast<int>(role)];
}

}  // namespace

LeafBlocks leaf_blocks(const ModelConfig& config) {
  constexpr int kWide = 4, kMany = 8192;
  const auto blocks = [](int inputs) { return !kOnHost && inputs >= kMany ? kWide : 1; };
  return {blocks(config.intermediate), blocks(config.vocab)};
}

ParamTable::ParamTable(const ModelConfig& config, const LeafBlocks& leaf_blocks)
    : config_(config),
      head_pad_(round_up(config.head_dim, kPanelColumns)),
      mlp_blocks_((config.intermediate + kMlpBlock - 1) / kMlpBlock),
      vocab_blocks_((config.vocab + kVocabBlock - 1) / kVocabBlock),
      leaf_blocks_(leaf_blocks) {
  const int h = config.hidden;
  first_piece_.push_back(0);
  add(ParamRole::kEmbedding, -1, ShardKind::kVocab, vocab_blocks_, kVocabBlock, h);
  for (int l = 0; l < config.layers; ++l) {
    add(ParamRole::kInputNorm, l, ShardKind::kReplicated, 1, 1, h);
    add(ParamRole::kQuery, l, ShardKind::kHeads, config.heads, head_pad_, h);
    add(ParamRole::kKeyValue, l, ShardKind::kKvHeads, config.kv_heads, 2 * head_pad_, h);
    if (config.qkv_bias) {
      add(ParamRole::kQueryBias, l, ShardKind::kHeads, config.heads, head_pad_, 1);
      add(ParamRole::kKeyValueBias, l, ShardKind::kKvHeads, config.kv_heads, 2 * head_pad_, 1);
    }
    if (config.qk_norm) {
      add(ParamRole::kQueryNorm, l, ShardKind::kReplicated, 1, 1, config.head_dim);
      add(ParamRole::kKeyNorm, l, ShardKind::kReplicated, 1, 1, config.head_dim);
    }
    add(ParamRole::kOutput, l, ShardKind::kHeads, config.heads, head_pad_, h);
    add(ParamRole::kPostNorm, l, ShardKind::kReplicated, 1, 1, h);
    add(ParamRole::kGateUp, l, ShardKind::kMlpBlocks, mlp_blocks_, 2 * kMlpBlock, h);
    add(ParamRole::kDown, l, ShardKind::kMlpBlocks, mlp_blocks_, kMlpBlock, h);
  }
  add(ParamRole::kFinalNorm, -1, ShardKind::kReplicated, 1, 1, h);
  if (config.has_scalar_head())
    add(ParamRole::kScore, -1, ShardKind::kReplicated, 1, 1, h);
  else if (!config.tied)
    add(ParamRole::kHead, -1, ShardKind::kVocab, vocab_blocks_, kVocabBlock, h);
}

void ParamTable::add(ParamRole role, int layer, ShardKind kind, int units, int unit_rows,
                     int columns) {
  const std::string prefix = layer < 0 ? "" : "layers." + std::to_string(layer) + ".";
  tensors_.push_back({prefix + role_name(role), role, layer, kind, units, unit_rows, columns});
  first_piece_.push_back(first_piece_.back() + units);
}

int ParamTable::index_of(ParamRole role, int layer) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i].role == role && tensors_[i].layer == layer) return static_cast<int>(i);
  return -1;
}

int ParamTable::tensor_of_piece(int piece) const {
  const auto next = std::upper_bound(first_piece_.begin(), first_piece_.end(), piece);
  return static_cast<int>(next - first_piece_.begin()) - 1;
}

std::vector<std::int64_t> ParamTable::piece_bytes() const {
  std::vector<std::int64_t> bytes;
  bytes.reserve(static_cast<std::size_t>(pieces()));
  for (const ParamTensor& tensor : tensors_)
    bytes.insert(bytes.end(), static_cast<std::size_t>(tensor.units),
                 tensor.unit_size() * std::int64_t{sizeof(float)});
  return bytes;
}

bool ParamTable::is_padding(int tensor, int unit, int row) const {
  switch (tensors_[tensor].kind) {
    case ShardKind::kReplicated:
      return false;
    case ShardKind::kHeads:
    case ShardKind::kKvHeads:
      return row % head_pad_ >= config_.head_dim;
    case ShardKind::kMlpBlocks:
      return unit * kMlpBlock + row % kMlpBlock >= config_.intermediate;
    case ShardKind::kVocab:
      return unit * kVocabBlock + row >= config_.vocab;
  }
  return false;
}

}  // namespace taper
