// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/Bf16.hpp"
#include "kernels/detail/Attention.hpp"
#include "kernels/detail/Lanes.hpp"

namespace taper::detail {

inline constexpr int kMaxHeadDim = 256;

// One query vector on its way through the chunks of its sequence.
struct QueryState {
  const float* q;
  float* out;
  float* stats;
  int limit;  // keys [0, limit) are visible
  float max;
  float sum;
};

// The query vector of a head for a token of a segment. (static: host_ops.inl.hpp says why.)
static inline QueryState query_of(const AttentionArgs& args, const SegmentArgs& segment, int token,
                                  int head) {
  const std::int64_t slot = static_cast<std::int64_t>(segment.row + token) * args.heads + head;
  return {args.q + slot * args.head_pad,
          args.out + slot * args.head_pad,
          args.stats == nullptr ? nullptr : args.stats + 2 * slot,
          segment.start + token + 1,
          0.0f,
          0.0f};
}

// The keys of the page of a position (within the sequence), and its values: T is what pages hold.
template <class T>
static inline const T* key_page(const PageArgs& pages, const SegmentArgs& segment, int kv_head,
                                int position) {
  return reinterpret_cast<const T*>(page_of(pages, segment, kv_head, position));
}
template <class T>
static inline const T* value_page(const PageArgs& pages, const SegmentArgs& segment, int kv_head,
                                  int position) {
  return key_page<T>(pages, segment, kv_head, position) + values_begin<T>(pages);
}

// What is read after the keys of the page of a position: those of the next page, or the values of
// the chunk.
template <class T>
static inline const T* after_keys(const PageArgs& pages, const SegmentArgs& segment, int kv_head,
                                  int position) {
  const int next = position / kPage * kPage + kPage;
  return next % kAttentionChunk != 0 && next < segment.start + segment.count
             ? key_page<T>(pages, segment, kv_head, next)
             : value_page<T>(pages, segment, kv_head, position / kAttentionChunk * kAttentionChunk);
}
// What is read after its values: those of the next page, or the keys of the next chunk.
template <class T>
static inline const T* after_values(const PageArgs& pages, const SegmentArgs& segment, int kv_head,
                                    int position) {
  const int next = position / kPage * kPage + kPage;
  if (next >= segment.start + segment.count)  // nothing: asking for it again costs little
    return value_page<T>(pages, segment, kv_head, position);
  return next % kAttentionChunk != 0 ? value_page<T>(pages, segment, kv_head, next)
                                     : key_page<T>(pages, segment, kv_head, next);
}
// Whether a pass over a page asks for what is read after it: pages lie anywhere in memory, where a
// processor does not look ahead. It costs time if all is in the cache.
enum class AskAhead { kNo, kYes };
// Asks for N vectors.
template <int N, AskAhead ahead, class T>
static inline void ask_for(const T* next) {
  if constexpr (ahead == AskAhead::kNo) return;
  constexpr int kLine = 64, kBytes = 16 * N * static_cast<int>(sizeof(T));
#pragma GCC unroll 4
  for (int byte = 0; byte < kBytes; byte += kLine)
    __builtin_prefetch(reinterpret_cast<const char*>(next) + byte, 0, 2);
}

// scores[j] = sum over d (ascending, fused) of q[d] * K[d][j] for one page and NQ queries. `next`
// is read after it.
template <class S, int NQ, AskAhead ahead, class T>
inline void page_scores(const QueryState* query, const T* k_page, const T* next, int head_dim,
                        float* const* scores) {
  constexpr int N = S::kProductVectors;
  for (int j0 = 0; j0 < kPage; j0 += 16 * N) {
    typename S::V acc[NQ][N];
#pragma GCC unroll 4
    for (int i = 0; i < NQ; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[i][v] = S::zero();
    for (int d = 0; d < head_dim; ++d) {
      typename S::V key[N];
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) key[v] = S::load(k_page + d * kPage + j0 + 16 * v);
      ask_for<N, ahead>(next + d * kPage + j0);
#pragma GCC unroll 4
      for (int i = 0; i < NQ; ++i) {
        const typename S::V x = S::set1(query[i].q[d]);
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) acc[i][v] = S::fma(x, key[v], acc[i][v]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < NQ; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) S::store(scores[i] + j0 + 16 * v, acc[i][v]);
  }
}

// Turns the scores of one chunk into exponentials relative to the chunk's maximum; keys from n on
// are skipped.
template <class S>
inline void chunk_softmax(float* scores, int n, float scale, float& max, float& sum) {
  using V = typename S::V;
  const V lowest = S::set1(-__builtin_inff());
  V best = lowest;
  for (int j = 0; j < n; j += 16) {
    const int lanes = n - j < 16 ? n - j : 16;
    const V s = S::keep_first(S::mul(S::load(scores + j), S::set1(scale)), lanes, lowest);
    S::store(scores + j, s);
    best = S::max(best, s);
  }
  max = max_lanes<S>(best);
  V total = S::zero();
  for (int j = 0; j < n; j += 16) {
    const int lanes = n - j < 16 ? n - j : 16;
    const V e = S::keep_first(exp<S>(S::sub(S::load(scores + j), S::set1(max))), lanes, S::zero());
    S::store(scores + j, e);
    total = S::add(total, e);
  }
  sum = sum_lanes<S>(total);
}

// out[i][d] += chain over keys [begin, end) of the chunk at `base`: e[i][j] * V[j][d], for N
// vectors of d from d0.
template <class S, class T, int NQ, int N, AskAhead ahead>
inline void extend_values(const PageArgs& pages, const SegmentArgs& segment, int kv_head, int base,
                          int begin, int end, const float* const* e, int d0,
                          typename S::V (&acc)[NQ][N]) {
  for (int j = begin; j < end;) {
    const T* page = value_page<T>(pages, segment, kv_head, base + j) + d0;
    const T* next = after_values<T>(pages, segment, kv_head, base + j) + d0;
    const int in_page = (base + j) % kPage;
    const int stop = j + kPage - in_page < end ? j + kPage - in_page : end;
    for (int at = in_page * pages.v_stride; j < stop; ++j, at += pages.v_stride) {
      const T* value = page + at;
      ask_for<N, ahead>(next + at);
      typename S::V x[N];
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) x[v] = S::load(value + 16 * v);
#pragma GCC unroll 4
      for (int i = 0; i < NQ; ++i) {
        const typename S::V weight = S::set1(e[i][j]);
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) acc[i][v] = S::fma(weight, x[v], acc[i][v]);
      }
    }
  }
}

// The weighted sum of values of one chunk for NQ queries, N vectors of the head at d0, into
// sums[i] + d0. Keys that all queries see are read once for all; the rest of each query follows
// alone, so its chain is the same in any company.
template <class S, class T, int NQ, int N, AskAhead ahead>
inline void chunk_values(const PageArgs& pages, const SegmentArgs& segment, int kv_head, int base,
                         const int* n, const float* const* e, int d0, float* const* sums) {
  int common = n[0];
  for (int i = 1; i < NQ; ++i) common = n[i] < common ? n[i] : common;
  typename S::V acc[NQ][N];
#pragma GCC unroll 4
  for (int i = 0; i < NQ; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) acc[i][v] = S::zero();
  extend_values<S, T, NQ, N, ahead>(pages, segment, kv_head, base, 0, common, e, d0, acc);
  for (int i = 0; i < NQ; ++i) {
    typename S::V alone[1][N];
    for (int v = 0; v < N; ++v) alone[0][v] = acc[i][v];
    extend_values<S, T, 1, N, AskAhead::kNo>(pages, segment, kv_head, base, common, n[i], e + i, d0,
                                             alone);
    for (int v = 0; v < N; ++v) S::store(sums[i] + d0 + 16 * v, alone[0][v]);
  }
}

// Merges what a query made of a chunk (attend_chunk) into its state; `first` starts it.
template <class S>
inline void merge_chunk(QueryState& query, const float* sums, const PageArgs& pages, bool first) {
  using V = typename S::V;
  const int head_dim = pages.head_dim;
  const float max = sums[pages.v_stride], sum = sums[pages.v_stride + 1];
  if (first) {
    query.max = max;
    query.sum = sum;
    for (int d = 0; d < head_dim; d += 16)
      S::store_n(query.out + d, S::load(sums + d), head_dim - d < 16 ? head_dim - d : 16);
    return;
  }
  const float top = max > query.max ? max : query.max;
  const float old_factor = exp_scalar<S>(query.max - top);
  const float new_factor = exp_scalar<S>(max - top);
  query.sum = query.sum * old_factor + sum * new_factor;
  query.max = top;
  for (int d = 0; d < head_dim; d += 16) {
    const int lanes = head_dim - d < 16 ? head_dim - d : 16;
    const V old_part = S::mul(S::load_n(query.out + d, lanes), S::set1(old_factor));
    S::store_n(query.out + d, S::add(old_part, S::mul(S::load(sums + d), S::set1(new_factor))),
               lanes);
  }
}

// What NQ queries make of the chunk of keys and values at `base`, which one of them sees at least:
// chunk_floats() each, the sums of values, then the maximum of scores and the sum of exponentials.
template <class S, class T, int NQ, AskAhead ahead>
inline void attend_chunk(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                         int base, const QueryState* query, float* sums) {
  const PageArgs& pages = args.pages;
  alignas(64) float scores[NQ][kAttentionChunk];
  int n[NQ], longest = 0;
  for (int i = 0; i < NQ; ++i) {
    n[i] = query[i].limit - base < kAttentionChunk ? query[i].limit - base : kAttentionChunk;
    if (n[i] < 0) n[i] = 0;
    longest = n[i] > longest ? n[i] : longest;
  }
  for (int j = 0; j < longest; j += kPage) {
    float* page_rows[NQ];
    for (int i = 0; i < NQ; ++i) page_rows[i] = scores[i] + j;
    page_scores<S, NQ, ahead>(query, key_page<T>(pages, segment, kv_head, base + j),
                              after_keys<T>(pages, segment, kv_head, base + j), pages.head_dim,
                              page_rows);
  }
  const float* e[NQ];
  float* of[NQ];
  for (int i = 0; i < NQ; ++i) {
    e[i] = scores[i];
    of[i] = sums + i * chunk_floats(pages.v_stride);
    float* softmax = of[i] + pages.v_stride;
    if (n[i] > 0) chunk_softmax<S>(scores[i], n[i], args.scale, softmax[0], softmax[1]);
  }
  constexpr int N = S::kProductVectors;
  int d0 = 0;
  for (; d0 + 16 * N <= pages.v_stride; d0 += 16 * N)
    chunk_values<S, T, NQ, N, ahead>(pages, segment, kv_head, base, n, e, d0, of);
  for (; d0 < pages.v_stride; d0 += 16)
    chunk_values<S, T, NQ, 1, ahead>(pages, segment, kv_head, base, n, e, d0, of);
}

template <class S, class T, AskAhead ahead>
inline void attend_few(const AttentionArgs& args, const SegmentArgs& segment, int kv_head, int base,
                       const QueryState* query, int n, float* sums) {
  static_assert(kQueryBlock == 4);
  if (n == 4) attend_chunk<S, T, 4, ahead>(args, segment, kv_head, base, query, sums);
  if (n == 3) attend_chunk<S, T, 3, ahead>(args, segment, kv_head, base, query, sums);
  if (n == 2) attend_chunk<S, T, 2, ahead>(args, segment, kv_head, base, query, sums);
  if (n == 1) attend_chunk<S, T, 1, ahead>(args, segment, kv_head, base, query, sums);
}

// All queries, whose limits ascend, see a chunk, a few at a time: the first ones find it in memory,
// the others in the cache. sums(i): where those of query i and the ones that go with it stand;
// seen(i, n) follows, for n queries of which the last one sees the chunk at least.
template <class S, class T, class Sums, class Seen>
inline void attend_queries(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                           int base, const QueryState* query, int count, const Sums& sums,
                           const Seen& seen) {
  for (int i = 0; i < count; i += kQueryBlock) {
    const int n = count - i < kQueryBlock ? count - i : kQueryBlock;
    if (query[i + n - 1].limit <= base) continue;
    if (i == 0)
      attend_few<S, T, AskAhead::kYes>(args, segment, kv_head, base, query, n, sums(0));
    else
      attend_few<S, T, AskAhead::kNo>(args, segment, kv_head, base, query + i, n, sums(i));
    seen(i, n);
  }
}

template <class S>
inline void finish_query(const QueryState& query, int head_dim) {
  for (int d = 0; d < head_dim; d += 16) {
    const int lanes = head_dim - d < 16 ? head_dim - d : 16;
    float* out = query.out + d;
    S::store_n(out, S::div(S::load_n(out, lanes), S::set1(query.sum)), lanes);
  }
  if (query.stats != nullptr) {
    query.stats[0] = query.max;
    query.stats[1] = query.sum;
  }
}

// Before the next chunk is read, which would put this one out of the cache.
template <class S, class T>
inline void attend(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                   QueryState* query, int count) {
  alignas(64) float sums[kQueryBlock * chunk_floats(kMaxHeadDim)];
  for (int base = 0; base < query[count - 1].limit; base += kAttentionChunk)
    attend_queries<S, T>(
        args, segment, kv_head, base, query, count, [&](int) { return sums; },
        [&](int i, int n) {
          for (int k = 0; k < n; ++k)
            if (query[i + k].limit > base)
              merge_chunk<S>(query[i + k], sums + k * chunk_floats(args.pages.v_stride), args.pages,
                             base == 0);
        });
  for (int i = 0; i < count; ++i) finish_query<S>(query[i], args.pages.head_dim);
}

template <class S, class T>
void attend_tokens(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                   int token_begin, int token_end) {
  const HeadRange heads = query_heads(args, kv_head);
  QueryState queries[kMostQueries];
  int count = 0;
  for (int token = token_begin; token < token_end; ++token) {
    for (int head = heads.begin; head < heads.end; ++head) {
      if (count == kMostQueries) {
        attend<S, T>(args, segment, kv_head, queries, count);
        count = 0;
      }
      queries[count++] = query_of(args, segment, token, head);
    }
  }
  if (count > 0) attend<S, T>(args, segment, kv_head, queries, count);
}

// One task: new tokens [token_begin, token_end) of a segment, all query heads of one KV head.
template <class S>
void attention_task(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                    int token_begin, int token_end) {
  args.pages.type == KvType::kBf16
      ? attend_tokens<S, bf16>(args, segment, kv_head, token_begin, token_end)
      : attend_tokens<S, float>(args, segment, kv_head, token_begin, token_end);
}

// All queries of a segment and KV head, kMostQueries at most; their number.
static inline int list_queries(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                               QueryState* queries) {
  const HeadRange heads = query_heads(args, kv_head);
  int count = 0;
  for (int token = 0; token < segment.count; ++token)
    for (int head = heads.begin; head < heads.end; ++head)
      queries[count++] = query_of(args, segment, token, head);
  return count;
}

// Where the sums of a query's chunk begin among those of all chunks of `count` queries.
static inline std::int64_t sums_begin(int chunk, int query, int count, const PageArgs& pages) {
  return (std::int64_t{chunk} * count + query) * chunk_floats(pages.v_stride);
}

template <class S, class T>
void attend_chunks(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                   int chunk_begin, int chunk_end, float* sums) {
  QueryState queries[kMostQueries];
  const int count = list_queries(args, segment, kv_head, queries);
  const auto nothing = [](int, int) {};
  for (int chunk = chunk_begin; chunk < chunk_end; ++chunk)
    attend_queries<S, T>(
        args, segment, kv_head, chunk * kAttentionChunk, queries, count,
        [&](int i) { return sums + sums_begin(chunk, i, count, args.pages); }, nothing);
}

// One task: what all queries of a segment and KV head, kMostQueries at most, make of its chunks
// [chunk_begin, chunk_end), chunk by chunk and in it query by query.
template <class S>
void attention_chunks_task(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                           int chunk_begin, int chunk_end, float* sums) {
  args.pages.type == KvType::kBf16
      ? attend_chunks<S, bf16>(args, segment, kv_head, chunk_begin, chunk_end, sums)
      : attend_chunks<S, float>(args, segment, kv_head, chunk_begin, chunk_end, sums);
}

// One task: merges what attention_chunks_task has left of all chunks.
template <class S>
void merge_chunks_task(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                       const float* sums) {
  QueryState queries[kMostQueries];
  const int count = list_queries(args, segment, kv_head, queries);
  for (int i = 0; i < count; ++i) {
    for (int chunk = 0; chunk * kAttentionChunk < queries[i].limit; ++chunk)
      merge_chunk<S>(queries[i], sums + sums_begin(chunk, i, count, args.pages), args.pages,
                     chunk == 0);
    finish_query<S>(queries[i], args.pages.head_dim);
  }
}

}  // namespace taper::detail
