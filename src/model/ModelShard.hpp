// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/ParamTable.hpp"
#include "shard/Shard.hpp"

namespace taper {

// The most ranks that can share out a model.
int largest_degree(const ParamTable& table);

// The shard of `degree` that holds the row of a token id.
int shard_of_id(const ParamTable& table, int degree, int id);

// The leaves, of `width` blocks each, that `blocks` hold.
constexpr Range leaves_of(Range blocks, int width) {
  return {blocks.begin / width, (blocks.end + width - 1) / width};
}

// What one rank of a tensor-parallel group computes: ranges of units of each kind.
class ModelShard {
 public:
  // Shard `index` of `degree`. Throws Error if the degree exceeds the units of the model.
  ModelShard(const ParamTable& table, int degree, int index);

  int degree() const { return degree_; }
  int index() const { return index_; }
  Range heads() const { return heads_; }
  // Those that the heads read; several shards hold one if the degree exceeds their number.
  Range kv_heads() const { return kv_heads_; }
  Range blocks() const { return blocks_; }
  Range vocab() const { return vocab_; }  // blocks of 64 rows
  Range units(ShardKind kind) const;

  int first_id() const { return vocab_.begin * kVocabBlock; }
  // Local columns of the vocabulary that hold ids below `ids`.
  int valid_vocab(int ids) const;

 private:
  int degree_, index_;
  Range heads_, kv_heads_, blocks_, vocab_;
};

// Where the local parameters of a shard stand in one flat array: tensors in table order, their
// local units one after another.
class LocalParams {
 public:
  LocalParams(const ParamTable& table, const ModelShard& shard);

  // Elements of all local tensors.
  std::int64_t size() const { return offsets_.back(); }
  Range units(int tensor) const { return units_[tensor]; }
  std::int64_t offset(int tensor) const { return offsets_[tensor]; }
  std::int64_t rows(int tensor) const;

  // The local pieces (global piece ids) in order, and where each begins.
  struct Piece {
    int id;
    std::int64_t offset;
    std::int64_t size;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::span<const Piece> pieces_of(int tensor) const;
  const ParamTable& table() const { return *table_; }

 private:
  const ParamTable* table_;
  std::vector<Range> units_;
  std::vector<std::int64_t> offsets_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> first_pieces_;  // of each tensor, and their number
};

}  // namespace taper
