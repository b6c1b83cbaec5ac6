// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace taper {

// What pages hold. On GPUs, attention over pages of bf16 multiplies in bf16 (Arithmetic::kBf16).
enum class KvType { kF32, kBf16 };

}  // namespace taper

namespace taper::detail {

inline constexpr int kPage = 64;             // positions per KV page
inline constexpr int kAttentionChunk = 256;  // positions per softmax chunk, a multiple of the page
inline constexpr int kTensorAttentionChunk = 128;  // the same on tensor cores
inline constexpr int kQueryBlock = 4;              // query vectors that share the loads of a page
inline constexpr int kMostQueries = 128;           // that see a chunk one after another on the host

// What a query makes of a chunk on the host, in floats: the sums of values, the maximum of its
// scores, the sum of exponentials.
static constexpr int chunk_floats(int v_stride) {
  return v_stride + 16;
}

// Consecutive new tokens of one sequence: positions [start, start + count) stand in rows [row, row
// + count).
struct SegmentArgs {
  const std::int32_t* blocks = nullptr;  // block of position p is blocks[p / kPage]
  int start = 0;
  int count = 0;
  int row = 0;
  // The gradients of keys and values of all positions, [0, start + count), stand in the rows from
  // row + gradient_shift on.
  int gradient_shift = 0;
};

// Where pages lie: page (block, head) of this layer starts at kv + block * block_stride + head *
// head_stride. Pages of f32 hold K as (head_dim, kPage), then V as (kPage, v_stride). Those of bf16
// hold two values in the place of a float, on the host K as (v_stride, kPage), on GPUs as (kPage,
// v_stride), then V as (kPage, v_stride).
struct PageArgs {
  float* kv = nullptr;
  std::int64_t block_stride = 0, head_stride = 0;  // floats
  int head_dim = 0;
  int v_stride = 0;  // head_dim rounded up to 16
  KvType type = KvType::kF32;
};

// Where the values of a page begin on the host, in elements: T is what it holds.
template <class T>
static constexpr std::int64_t values_begin(const PageArgs& pages) {
  return std::int64_t{sizeof(T) == 4 ? pages.head_dim : pages.v_stride} * kPage;
}

// The page of a position of a sequence. (static: host_ops.inl.hpp says why.)
static constexpr float* page_of(const PageArgs& pages, const SegmentArgs& segment, int kv_head,
                                int position) {
  return pages.kv + segment.blocks[position / kPage] * pages.block_stride +
         kv_head * pages.head_stride;
}

// The first token of a segment that sees the key of a position.
static constexpr int first_query(const SegmentArgs& segment, int position) {
  return position > segment.start ? position - segment.start : 0;
}
// The row of a position in the gradients of keys and values.
static constexpr std::int64_t gradient_row(const SegmentArgs& segment, int position) {
  return std::int64_t{segment.row} + segment.gradient_shift + position;
}

// Memory in which several tasks (on GPUs: blocks) that share out the keys of some queries leave the
// sums of chunks. Without it one of them has all keys.
struct AttentionScratch {
  float* sums = nullptr;
  std::int64_t floats = 0;
  // On GPUs:
  int chunks = 0;               // of the longest sequence that there may be
  unsigned* arrived = nullptr;  // kMostShared zeros, and zeros again after a launch
  // Tiles of sixteen queries of a segment and KV head that are shared out, at most, and blocks that
  // do so.
  static constexpr int kMostShared = 128, kBlocks = 256;
};

struct AttentionArgs {
  PageArgs pages;
  // (rows, heads, head_pad). Local query head h reads local KV head (h + head_offset) / group: the
  // offset is not zero if a shard begins inside the group of a KV head.
  const float* q = nullptr;
  float* out = nullptr;  // like q
  float* stats =
      nullptr;  // (rows, heads, 2): max of scaled scores and sum of exponentials; null: not wanted
  int heads = 0, kv_heads = 0, group = 1, head_offset = 0, head_pad = 0;
  float scale = 1.0f;
};

struct AttentionBackwardArgs {
  AttentionArgs forward;        // q, out and stats as the forward pass left them
  const float* dout = nullptr;  // like q
  float* dq = nullptr;          // like q, written
  float* dkv = nullptr;         // (rows, kv heads, 2, head_pad), written: dK then dV
};

// Local query heads that read local KV head `kv_head`. (static: host_ops.inl.hpp says why.)
struct HeadRange {
  int begin, end;
};
static constexpr HeadRange query_heads(const AttentionArgs& args, int kv_head) {
  const int begin = kv_head * args.group - args.head_offset;
  const int end = begin + args.group;
  return {begin < 0 ? 0 : begin, end < args.heads ? end : args.heads};
}

}  // namespace taper::detail
