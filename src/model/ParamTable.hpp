// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/ModelConfig.hpp"
#include "shard/Shard.hpp"

namespace taper {

// By which units a tensor is sharded over a tensor-parallel group.
enum class ShardKind { kReplicated, kHeads, kKvHeads, kMlpBlocks, kVocab };

// Tensors of a layer, or of the whole model, as Taper stores them. All are matrices whose rows are
// sharded: weights that are split by their inputs (output and down projections) are stored
// transposed.
enum class ParamRole {
  kEmbedding,     // (vocab, h), by blocks of 64 rows
  kInputNorm,     // (h)
  kQuery,         // (heads x head_pad, h)
  kQueryBias,     // (heads x head_pad)
  kKeyValue,      // (kv_heads x {k, v} x head_pad, h)
  kKeyValueBias,  // (kv_heads x {k, v} x head_pad)
  kQueryNorm,     // (head_dim)
  kKeyNorm,       // (head_dim)
  kOutput,        // transposed: (heads x head_pad, h)
  kPostNorm,      // (h)
  kGateUp,        // (blocks x {gate, up} x 64, h)
  kDown,          // transposed: (blocks x 64, h)
  kFinalNorm,     // (h)
  kHead,          // (vocab, h); absent if tied
  kScore,         // (h), the scalar head; absent if the output is tokens
};

struct ParamTensor {
  std::string name;  // "layers.3.query", "embedding", ...
  ParamRole role{};
  int layer = -1;
  ShardKind kind{};
  int units = 1;
  int unit_rows = 1;  // stored rows per unit, padding included
  int columns = 1;

  std::int64_t unit_size() const { return std::int64_t{unit_rows} * columns; }
};

// Columns of MLP per unit.
inline constexpr int kMlpBlock = 64;
// Rows of the vocabulary per unit.
inline constexpr int kVocabBlock = 64;

// How many blocks of the MLP and of the vocabulary are a leaf of sums over them, in an arithmetic
// that rounds operands (in f32 each block is one). Shards never cut a leaf, in no arithmetic.
struct LeafBlocks {
  int mlp = 1;
  int vocab = 1;
};
// On GPUs 4 where there are at least 8,192 columns, or rows: tensor cores lose time at the end of a
// leaf. Else 1.
LeafBlocks leaf_blocks(const ModelConfig& config);

// The one table of a model's tensors, in their global order: the loader, the optimizer, the
// resharder and checkpoints all read it. A piece is one unit of one tensor; pieces are numbered
// through in table order.
class ParamTable {
 public:
  explicit ParamTable(const ModelConfig& config) : ParamTable(config, taper::leaf_blocks(config)) {}
  ParamTable(const ModelConfig& config, const LeafBlocks& leaf_blocks);

  const ModelConfig& config() const { return config_; }
  const std::vector<ParamTensor>& tensors() const { return tensors_; }
  int index_of(ParamRole role, int layer = -1) const;  // -1 if the model has no such tensor

  int pieces() const { return first_piece_.back(); }
  int first_piece(int tensor) const { return first_piece_[tensor]; }
  int tensor_of_piece(int piece) const;
  // The sizes of all pieces in f32, as masters are held and travel, by piece.
  std::vector<std::int64_t> piece_bytes() const;

  // True for a stored row that no Hugging Face tensor fills; it is zero and stays so.
  bool is_padding(int tensor, int unit, int row) const;

  int head_pad() const { return head_pad_; }
  int mlp_blocks() const { return mlp_blocks_; }
  int vocab_blocks() const { return vocab_blocks_; }
  const LeafBlocks& leaf_blocks() const { return leaf_blocks_; }

 private:
  void add(ParamRole role, int layer, ShardKind kind, int units, int unit_rows, int columns);

  ModelConfig config_;
  int head_pad_, mlp_blocks_, vocab_blocks_;
  LeafBlocks leaf_blocks_;
  std::vector<ParamTensor> tensors_;
  std::vector<int> first_piece_;
};

}  // namespace taper
