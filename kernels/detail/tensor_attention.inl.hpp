// SPDX-License-Identifier: Apache-2.0
//
// What the forward and backward kernels of attention on tensor cores share: which queries a block
// has, and how activations and pages come into shared memory.
#pragma once

#include "base/Error.hpp"
#include "kernels/detail/Attention.hpp"
#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/DeviceMath.hpp"
#include "kernels/detail/TensorAttention.hpp"
#include "kernels/detail/TensorCore.hpp"
#include "kernels/detail/TensorLaunch.hpp"

namespace taper::detail {

inline constexpr int kTensorThreads = 128;  // of a block: four warps

// The query vectors of one segment that read one KV head, numbered by token and, within a token, by
// head.
struct HeadQueries {
  SegmentArgs segment;
  int kv_head, first_head, group, heads, count;

  KOKKOS_INLINE_FUNCTION HeadQueries(const AttentionArgs& args, const SegmentArgs& s, int kv)
      : segment(s), kv_head(kv), heads(args.heads) {
    const HeadRange range = query_heads(args, kv);
    first_head = range.begin;
    group = range.end - range.begin;
    count = segment.count * group;
  }
  // The keys that query p sees; none beyond the last query.
  KOKKOS_INLINE_FUNCTION int visible(int p) const {
    return p < count ? segment.start + p / group + 1 : 0;
  }
  // Its place among the vectors of the activations.
  KOKKOS_INLINE_FUNCTION std::int64_t vector(int p) const {
    return static_cast<std::int64_t>(segment.row + p / group) * heads + first_head + p % group;
  }
};

#if defined(__CUDA_ARCH__)

// The queries [first, first + lines) of activations, rounded to bf16, into lines of `width`; zeros
// beyond the vectors.
template <int width>
__device__ void load_queries(bf16* tile, int lines, const float* activations,
                             const AttentionArgs& args, const HeadQueries& queries, int first) {
  for (int i = static_cast<int>(threadIdx.x); i < lines * width / 4; i += kTensorThreads) {
    const int line = i / (width / 4), d = i % (width / 4) * 4, p = first + line;
    float x[4] = {};
    if (p < queries.count) {
      const float* from = activations + queries.vector(p) * args.head_pad + d;
      for (int j = 0; j < 4; ++j)
        if (d + j < args.pages.head_dim) x[j] = from[j];
    }
    auto* to = reinterpret_cast<unsigned*>(chunk_at<width>(tile, line, d / 8) + d % 8);
    to[0] = packed(x[0], x[1]);
    to[1] = packed(x[2], x[3]);
  }
}

// Starts to copy keys (or values) of the positions [first, first + lines) into lines of `width`;
// zeros from position `end` on and beyond the vectors.
enum class PagePart { kKeys, kValues };
template <int width, PagePart part>
__device__ void load_pages(bf16* tile, int lines, const PageArgs& pages, const HeadQueries& queries,
                           int first, int end) {
  for (int i = static_cast<int>(threadIdx.x); i < lines * width / 8; i += kTensorThreads) {
    const int line = i / (width / 8), chunk = i % (width / 8), position = first + line;
    const bool inside = position < end && chunk * 8 < pages.v_stride;
    const auto* from = reinterpret_cast<const bf16*>(pages.kv);
    if (inside) {
      const float* page = page_of(pages, queries.segment, queries.kv_head, position);
      from = reinterpret_cast<const bf16*>(page) +
             ((part == PagePart::kValues ? kPage : 0) + position % kPage) * pages.v_stride +
             chunk * 8;
    }
    start_copy(chunk_at<width>(tile, line, chunk), from, inside ? 16 : 0);
  }
}

#endif

// f(width) with the lines, in values, that hold vectors of a head: 64, 128 or 256.
template <class F>
void with_line_width(int head_dim, const F& f) {
  TAPER_VALIDATE(head_dim <= 256, "attention in bf16 arithmetic takes heads of at most 256 (here "
                                      << head_dim << "); use f32 arithmetic");
  if (head_dim <= 64)
    f(std::integral_constant<int, 64>());
  else if (head_dim <= 128)
    f(std::integral_constant<int, 128>());
  else
    f(std::integral_constant<int, 256>());
}

}  // namespace taper::detail
