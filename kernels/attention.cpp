// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.hpp"

#include <algorithm>

#include "base/Bf16.hpp"
#include "base/Error.hpp"
#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"
#include "kernels/detail/attention_args.hpp"

namespace taper {
namespace {

constexpr int kTokensPerTask = 32;

float as_stored(float value, float /*type*/) {
  return value;
}
bf16 as_stored(float value, bf16 /*type*/) {
  return to_bf16(value);
}

template <class T, class E>
void write_pages_of(const E& exec, const LayerPages& pages, MatrixView<const float, E> kv,
                    Segments<E> segments, const AttentionShape& shape) {
  const int tasks = static_cast<int>(segments.size()) * shape.kv_heads;
  const AttentionSegment* list = segments.data();
  const float* source = kv.data();
  detail::for_each_uneven("taper::write_pages", exec, tasks, [=](const int i) {
    const AttentionSegment& segment = list[i / shape.kv_heads];
    const int head = i % shape.kv_heads, end = segment.start + segment.count;
    const std::int64_t row_floats = std::int64_t{shape.kv_heads} * 2 * shape.head_pad;
    const float* k = source + segment.row * row_floats + head * 2 * shape.head_pad;
    for (int begin = segment.start, next = 0; begin < end;
         k += (next - begin) * row_floats, begin = next) {
      next = std::min(end, (begin / kPage + 1) * kPage);
      const int slot = begin % kPage, positions = next - begin;
      T* page = reinterpret_cast<T*>(detail::page_of(pages, segment, head, begin));
      for (int d = 0; d < pages.head_dim; ++d)
        for (int t = 0; t < positions; ++t)
          page[d * kPage + slot + t] = as_stored(k[t * row_floats + d], T());
      T* v = page + detail::values_begin<T>(pages) + slot * pages.v_stride;
      for (int t = 0; t < positions; ++t, v += pages.v_stride)
        for (int d = 0; d < pages.v_stride; ++d)
          v[d] = as_stored(k[t * row_floats + shape.head_pad + d], T());
    }
  });
}

}  // namespace

template <class E>
void write_pages(const E& exec, const LayerPages& pages, MatrixView<const float, E> kv,
                 Segments<E> segments, const AttentionShape& shape) {
  pages.type == KvType::kBf16 ? write_pages_of<bf16>(exec, pages, kv, segments, shape)
                              : write_pages_of<float>(exec, pages, kv, segments, shape);
}

namespace {

constexpr int chunks_for(int keys) {
  return detail::quotient_up(keys, detail::kAttentionChunk);
}

int chunks_of(const AttentionSegment& segment) {
  return segment.count == 0 ? 0 : chunks_for(segment.start + segment.count);
}

// Floats of the sums of all chunks of a segment and KV head.
std::int64_t sum_floats(const AttentionSegment& segment, const detail::AttentionArgs& args) {
  return std::int64_t{chunks_of(segment)} * segment.count * args.group *
         detail::chunk_floats(args.pages.v_stride);
}

// Runs of chunks that become tasks of their own, if they do.
struct ChunkTasks {
  int chunks = 0;  // of a task; 0: each has all keys of some tokens
  int most = 0;    // tasks of a KV head of the longest segment
};

// Chunks are shared out if one segment and KV head is more than an eighth of a thread's part, as at
// the end of a generation: it would keep a thread busy while others have nothing left. Tasks are
// that eighth.
ChunkTasks share_chunks(int threads, const AttentionSegments<HostExec>& segments,
                        const detail::AttentionArgs& args) {
  if (threads == 1 || segments.scratch.floats == 0) return {};
  const int parts = 8 * threads;
  int longest = 0, tokens = 0;
  std::int64_t total = 0, floats = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    longest = std::max(longest, chunks_of(segments(s)));
    tokens = std::max(tokens, segments(s).count);
    total += std::int64_t{chunks_of(segments(s))} * args.kv_heads;
    floats += sum_floats(segments(s), args) * args.kv_heads;
  }
  if (longest <= 1 || parts * longest <= total || tokens * args.group > detail::kMostQueries ||
      floats > segments.scratch.floats)
    return {};
  const int chunks = std::max(1, static_cast<int>(total / parts));
  return {chunks, detail::quotient_up(longest, chunks)};
}

// Results of chunks, then what they are together.
void attention_by_chunks(const HostExec& exec, const detail::AttentionArgs& args,
                         const AttentionSegments<HostExec>& segments, const ChunkTasks& tasks) {
  const detail::HostOps& ops = detail::host_ops();
  const AttentionSegment* list = segments.data();
  const int kv_heads = args.kv_heads, heads = static_cast<int>(segments.size()) * kv_heads;
  const auto sums = [&](int segment, int kv_head) {
    float* place = segments.scratch.sums;
    for (int s = 0; s < segment; ++s) place += sum_floats(list[s], args) * kv_heads;
    return place + sum_floats(list[segment], args) * kv_head;
  };
  detail::for_each_uneven("taper::attention", exec, heads * tasks.most, [&](const int i) {
    const int head = i / tasks.most, s = head / kv_heads, begin = i % tasks.most * tasks.chunks;
    const int end = std::min(begin + tasks.chunks, chunks_of(list[s]));
    if (begin < end)
      ops.attention_chunks(args, list[s], head % kv_heads, begin, end, sums(s, head % kv_heads));
  });
  detail::for_each_uneven("taper::merge_chunks", exec, heads, [&](const int head) {
    const int s = head / kv_heads, kv_head = head % kv_heads;
    ops.merge_chunks(args, list[s], kv_head, sums(s, kv_head));
  });
}

}  // namespace

template <>
std::int64_t attention_scratch_floats<HostExec>(int group, int head_dim, int positions) {
  constexpr int kSegmentHeads = 32;  // of the longest sequences, with one new token each
  const int chunks = chunks_for(positions);
  return chunks > 1 ? std::int64_t{kSegmentHeads} * chunks * group *
                          detail::chunk_floats(v_stride(head_dim))
                    : 0;
}

template <class E>
void attention(const E& exec, MatrixView<float, E> out, MatrixView<float, E> stats,
               MatrixView<const float, E> q, const LayerPages& pages, Segments<E> segments,
               const AttentionShape& shape) {
  const detail::AttentionArgs args = detail::attention_args(out, stats, q, pages, shape);
  if (const ChunkTasks tasks = share_chunks(exec.concurrency(), segments, args); tasks.chunks > 0) {
    attention_by_chunks(exec, args, segments, tasks);
    return;
  }
  const auto task = detail::host_ops().attention;
  const AttentionSegment* list = segments.data();
  const int kv_heads = shape.kv_heads, heads = static_cast<int>(segments.size()) * kv_heads;
  int longest = 0;
  for (std::size_t s = 0; s < segments.size(); ++s)
    longest = list[s].count > longest ? list[s].count : longest;
  const int parts = (longest + kTokensPerTask - 1) / kTokensPerTask;
  detail::for_each_uneven("taper::attention", exec, heads * parts, [=](const int i) {
    const AttentionSegment& segment = list[i / (kv_heads * parts)];
    const int begin = i % parts * kTokensPerTask;
    const int end = begin + kTokensPerTask < segment.count ? begin + kTokensPerTask : segment.count;
    if (begin < end) task(args, segment, i / parts % kv_heads, begin, end);
  });
}

template <class E>
void attention_backward(const E& exec, MatrixView<float, E> dq, MatrixView<float, E> dkv,
                        MatrixView<const float, E> dout, MatrixView<const float, E> out,
                        MatrixView<const float, E> stats, MatrixView<const float, E> q,
                        const LayerPages& pages, Segments<E> segments,
                        const AttentionShape& shape) {
  const detail::AttentionBackwardArgs args =
      detail::attention_backward_args(dq, dkv, dout, out, stats, q, pages, shape);
  const auto task = detail::host_ops().attention_backward;
  const AttentionSegment* list = segments.data();
  for (std::size_t s = 0; s < segments.size(); ++s) {
    TAPER_EXPECT(detail::gradient_row(list[s], 0) >= 0);
    TAPER_EXPECT(detail::gradient_row(list[s], list[s].start + list[s].count) <=
                 static_cast<std::int64_t>(dkv.extent(0)));
  }
  const int n = static_cast<int>(segments.size()) * shape.kv_heads;
  detail::for_each_uneven("taper::attention_backward", exec, n, [=](const int i) {
    task(args, list[i / shape.kv_heads], i % shape.kv_heads);
  });
}

template void write_pages<HostExec>(const HostExec&, const LayerPages&,
                                    MatrixView<const float, HostExec>, Segments<HostExec>,
                                    const AttentionShape&);
template void attention<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                  MatrixView<float, HostExec>, MatrixView<const float, HostExec>,
                                  const LayerPages&, Segments<HostExec>, const AttentionShape&);
template void attention_backward<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                           MatrixView<float, HostExec>,
                                           MatrixView<const float, HostExec>,
                                           MatrixView<const float, HostExec>,
                                           MatrixView<const float, HostExec>,
                                           MatrixView<const float, HostExec>, const LayerPages&,
                                           Segments<HostExec>, const AttentionShape&);

}  // namespace taper
