// SPDX-License-Identifier: Apache-2.0
//
// A batch of sequences for attention: activations, pages at scattered places, and the wanted
// results.
#pragma once

#include <vector>

#include "kernels/attention.hpp"
#include "kernels/ops/Data.hpp"

namespace taper::test {

// Rows of all sequences, one after another, as in training. Pages start as NaN and lie in no order,
// so that anything read beyond a sequence shows.
class AttentionBatch {
 public:
  AttentionBatch(const AttentionShape& shape, const std::vector<int>& lengths,
                 KvType type = KvType::kF32);

  const AttentionShape& shape() const { return shape_; }
  const std::vector<int>& lengths() const { return lengths_; }
  int rows() const { return first_row_.back(); }
  int first_row(int sequence) const { return first_row_[sequence]; }
  KvType type() const { return pages_.type; }

  Staged<AttentionSegment> whole_segments() const { return segments_between(0, 1 << 30); }
  // Positions [from, to) of each sequence, as far as it has them; sequences in descending order.
  Staged<AttentionSegment> segments_between(int from, int to) const;

  // Writes K and V of the segments into the pages, then attends.
  void forward(const Staged<AttentionSegment>& segments);
  void backward() { backward(whole_segments()); }
  // Of some tokens. The gradients of keys and values stand in the rows of their positions.
  void backward(Staged<AttentionSegment> segments);

  Floats q, kv, dout;  // (rows, heads * pad), (rows, kv_heads * 2 * pad), like q
  Floats seen;         // kv as chains find it in the pages
  Floats out, stats;   // like q, (rows, heads * 2)
  Floats dq, dkv;      // like q, like kv

 private:
  AttentionShape shape_;
  std::vector<int> lengths_;
  std::vector<int> first_row_;
  std::vector<Staged<std::int32_t>> blocks_;
  Floats pool_, scratch_;
  int scratch_chunks_ = 0;
  Staged<unsigned> arrived_ = Staged<unsigned>(detail::AttentionScratch::kMostShared, 0u);
  LayerPages pages_;
};

struct AttentionResult {
  Floats out, stats, dq, dkv;
};
// By the chains of f32 or those of the tensor cores of Exec, as the pages of the batch tell.
AttentionResult canonical_forward(const AttentionBatch& batch);
// The backward pass of the tokens at positions from `first` on.
AttentionResult canonical_backward(const AttentionBatch& batch, int first = 0);

// (rows, vectors * head_pad) without padding: (rows, vectors * head_dim).
Floats compact(const Floats& values, int rows, int vectors, const AttentionShape& shape);

// In the layout of compact().
reference::Vector reference_forward(const AttentionBatch& batch);
struct ReferenceGradients {
  reference::Vector dq, dkv;
};
ReferenceGradients reference_backward(const AttentionBatch& batch);

}  // namespace taper::test
