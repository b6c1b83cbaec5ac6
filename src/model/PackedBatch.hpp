// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/Staging.hpp"
#include "model/DeviceBatch.hpp"

namespace taper {

// Whole sequences packed into one micro-batch. A sequence may share its first tokens with the last
// one before it that shares none; then `ids` has only the tokens behind them.
struct PackedSequences {
  std::vector<std::int32_t> ids;  // (rows)
  std::vector<int> lengths;       // tokens of each sequence in `ids`
  std::vector<int> shared = {};   // tokens of each sequence that it shares; empty: none does

  int rows() const { return static_cast<int>(ids.size()); }
  // Tokens of all sequences, shared ones as often as they are.
  int positions() const { return std::accumulate(shared.begin(), shared.end(), rows()); }
};

// Packed sequences as a pass takes them: every sequence has pages of its own, counted from 0.
class PackedBatch {
 public:
  // Pages that sequences of so many tokens take together, at most.
  static std::int64_t pages(int rows, int sequences);

  // The memory of batches of so many rows, and where it is.
  static std::int64_t floats(int rows, int sequences) {
    return DeviceBatch::floats(shape_of(rows, sequences));
  }
  PackedBatch(float* memory, int rows, int sequences)
      : device_(memory, shape_of(rows, sequences)) {}
  PackedBatch(const PackedBatch&) = delete;  // the batch looks at what is held here
  PackedBatch& operator=(const PackedBatch&) = delete;

  void set(const Exec& exec, const PackedSequences& sequences);
  // Of the sequences that were set last.
  const TokenBatch& batch() const { return batch_; }

 private:
  static DeviceBatch::Shape shape_of(int rows, int sequences) {
    return {rows, sequences, (rows + kPage - 1) / kPage};
  }

  // Of the segments, some of which begin behind a prefix.
  void share_prefixes();

  DeviceBatch device_;
  Staged<std::int32_t> ids_, positions_, blocks_, rows_;
  Staged<AttentionSegment> segments_, prefixes_;
  TokenBatch batch_;
};

// Floats of one page of a layer for the keys and values of a shard, and such pages in `memory`.
std::int64_t layer_page_floats(const ActivationShape& shape, int head_dim, KvType type);
LayerPages make_layer_pages(const ActivationShape& shape, int head_dim, KvType type, float* memory);

}  // namespace taper
