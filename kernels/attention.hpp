// SPDX-License-Identifier: Apache-2.0
//
// Causal attention over paged keys and values: one routine for decode, prefill and training. Keys
// are taken in chunks of their sequence (256 positions, over pages of bf16 on GPUs 128), each chunk
// yields its own (max, sum, values), chunks are merged in ascending order; a query's result depends
// on its sequence alone. On the host, pages of bf16 hold rounded keys and values, and all is
// computed in f32.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/Exec.hpp"
#include "kernels/Views.hpp"
#include "kernels/detail/Attention.hpp"

namespace taper {

using detail::kPage;  // positions per page

using AttentionSegment = detail::SegmentArgs;  // new tokens of one sequence, described there
using LayerPages = detail::PageArgs;           // the pages of one layer, likewise

// Elements of one value vector in a page: whole vector registers.
constexpr int v_stride(int head_dim) {
  return (head_dim + 15) / 16 * 16;
}

// The segments of a batch. The host reads them too, to know the size of a launch.
template <class E>
struct AttentionSegments {
  AttentionSegments() = default;
  // `staged` is where both can reach it.
  template <class View>
  requires std::is_convertible_v<View, VectorView<const AttentionSegment, E>> AttentionSegments(
      const View& staged)
      : host(staged), device(host.data()) {}
  // Kernels read a copy that is nearer to them.
  AttentionSegments(VectorView<const AttentionSegment, E> staged, const AttentionSegment* copy)
      : host(staged), device(copy) {}

  std::size_t size() const { return host.size(); }
  const AttentionSegment& operator()(std::size_t i) const { return host(i); }
  const AttentionSegment* data() const { return device; }

  VectorView<const AttentionSegment, E> host;
  const AttentionSegment* device = nullptr;
  detail::AttentionScratch scratch;
};
template <class E>
using Segments = std::type_identity_t<AttentionSegments<E>>;

// The type of the pages over which attention computes.
constexpr KvType kv_type(const HostExec& exec) {
  return exec.kv_type;
}
#if defined(TAPER_CUDA)
constexpr KvType kv_type(const CudaExec& exec) {
  return exec.arithmetic == Arithmetic::kBf16 ? KvType::kBf16 : KvType::kF32;
}
#endif

template <class E>
constexpr Precision precision(const E& exec) {
  return {exec.arithmetic, kv_type(exec)};
}

// Memory of one page of one KV head, in floats.
constexpr std::int64_t page_floats(int head_dim, KvType type) {
  return std::int64_t{kPage} *
         (type == KvType::kBf16 ? v_stride(head_dim) : head_dim + v_stride(head_dim));
}

// The pages of one layer in one piece of memory: block by block, in each the heads.
constexpr LayerPages make_pages(float* memory, int kv_heads, int head_dim, KvType type) {
  const std::int64_t page = page_floats(head_dim, type);
  return {memory, kv_heads * page, page, head_dim, v_stride(head_dim), type};
}

// The pages of all layers: layer l begins layer_stride floats after layer l - 1.
struct PagedLayers {
  LayerPages first;
  std::int64_t layer_stride = 0;

  LayerPages layer(int l) const {
    LayerPages pages = first;
    pages.kv += l * layer_stride;
    return pages;
  }
};

struct AttentionShape {
  int heads = 0;     // local query heads
  int kv_heads = 0;  // local KV heads
  int group = 1;     // query heads per KV head
  int head_offset =
      0;  // first local query head, counted from the first query head of the first local KV head
  int head_dim = 0;
  int head_pad = 0;  // stride of a head in activations, a multiple of 64
};

// Where a device keeps the tokens of a batch: (rows) of ids and positions, the segments, and for
// each segment `stride` blocks.
struct BatchCopy {
  std::int32_t *ids = nullptr, *positions = nullptr;
  AttentionSegment* segments = nullptr;
  std::int32_t* blocks = nullptr;
  int stride = 0;
  unsigned* arrived = nullptr;  // of AttentionScratch: becomes zero
};

// Floats of AttentionScratch for decoding sequences of up to so many positions, on GPUs over pages
// of bf16.
template <class E>
std::int64_t attention_scratch_floats(int group, int head_dim, int positions);
template <>
std::int64_t attention_scratch_floats<HostExec>(int group, int head_dim, int positions);

#if defined(TAPER_CUDA)
template <>
std::int64_t attention_scratch_floats<CudaExec>(int group, int head_dim, int positions);
// Chunks of such a sequence, on GPUs.
constexpr int attention_scratch_chunks(int positions) {
  return (positions + detail::kTensorAttentionChunk - 1) / detail::kTensorAttentionChunk;
}

// Copies a batch that the host has staged; segments tile its rows (one of no tokens has one), and
// those of the copy refer to the copied blocks.
void copy_batch(const CudaExec& exec, const BatchCopy& to,
                VectorView<const std::int32_t, CudaExec> ids,
                VectorView<const std::int32_t, CudaExec> positions,
                VectorView<const AttentionSegment, CudaExec> segments);
#endif

// Writes K (after rope) and V of new tokens into their pages. kv: (rows, kv_heads * 2 * head_pad),
// K then V per head.
template <class E>
void write_pages(const E& exec, const LayerPages& pages, MatrixView<const float, E> kv,
                 Segments<E> segments, const AttentionShape& shape);

// out (rows, heads * head_pad) from q (same shape, after rope) and the pages. stats (rows, heads *
// 2), max and sum of each softmax, is written if it is not empty. Padding columns of out are not
// written.
template <class E>
void attention(const E& exec, MatrixView<float, E> out, MatrixView<float, E> stats,
               MatrixView<const float, E> q, const LayerPages& pages, Segments<E> segments,
               const AttentionShape& shape);

// dq (like q) and dkv from dout. dkv (any rows, kv_heads * 2 * head_pad) receives, for each
// segment, what its tokens give to the keys and values of all positions that they see: segments may
// see the same keys, but not write the same rows (SegmentArgs::gradient_shift).
template <class E>
void attention_backward(const E& exec, MatrixView<float, E> dq, MatrixView<float, E> dkv,
                        MatrixView<const float, E> dout, MatrixView<const float, E> out,
                        MatrixView<const float, E> stats, MatrixView<const float, E> q,
                        const LayerPages& pages, Segments<E> segments, const AttentionShape& shape);

}  // namespace taper
