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

// The keys of the page of a position (within the sequence), and its values: T is what pages hold.
// (static: host_ops.inl.hpp says why.)
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

// scores[j] = sum over d (ascending, fused) of q[d] * K[d][j] for one page and NQ queries.
template <class S, int NQ, class T>
inline void page_scores(const QueryState* query, const T* k_page, int head_dim,
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
template <class S, class T, int NQ, int N>
inline void extend_values(const PageArgs& pages, const SegmentArgs& segment, int kv_head, int base,
                          int begin, int end, const float* const* e, int d0,
                          typename S::V (&acc)[NQ][N]) {
  for (int j = begin; j < end;) {
    const T* page = value_page<T>(pages, segment, kv_head, base + j) + d0;
    const int in_page = (base + j) % kPage;
    const int stop = j + kPage - in_page < end ? j + kPage - in_page : end;
    for (const T* value = page + in_page * pages.v_stride; j < stop; ++j, value += pages.v_stride) {
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
// values[i] + d0. Keys that all queries see are read once for all; the rest of each query follows
// alone, so its chain is the same in any company.
template <class S, class T, int NQ, int N>
inline void chunk_values(const PageArgs& pages, const SegmentArgs& segment, int kv_head, int base,
                         const int* n, const float* const* e, int d0,
                         float (*values)[kMaxHeadDim]) {
  int common = n[0];
  for (int i = 1; i < NQ; ++i) common = n[i] < common ? n[i] : common;
  typename S::V acc[NQ][N];
#pragma GCC unroll 4
  for (int i = 0; i < NQ; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) acc[i][v] = S::zero();
  extend_values<S, T, NQ, N>(pages, segment, kv_head, base, 0, common, e, d0, acc);
  for (int i = 0; i < NQ; ++i) {
    typename S::V alone[1][N];
    for (int v = 0; v < N; ++v) alone[0][v] = acc[i][v];
    extend_values<S, T, 1, N>(pages, segment, kv_head, base, common, n[i], e + i, d0, alone);
    for (int v = 0; v < N; ++v) S::store(values[i] + d0 + 16 * v, alone[0][v]);
  }
}

// Merges a chunk (max, sum, values) into the running state; `first` starts it.
template <class S>
inline void merge_chunk(QueryState& query, float max, float sum, const float* values, int head_dim,
                        bool first) {
  using V = typename S::V;
  if (first) {
    query.max = max;
    query.sum = sum;
    for (int d = 0; d < head_dim; d += 16)
      S::store_n(query.out + d, S::load(values + d), head_dim - d < 16 ? head_dim - d : 16);
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
    S::store_n(query.out + d, S::add(old_part, S::mul(S::load(values + d), S::set1(new_factor))),
               lanes);
  }
}

// What NQ queries make of the chunk of keys and values at `base`, which one of them sees at least.
template <class S, class T, int NQ>
inline void attend_chunk(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                         int base, QueryState* query) {
  const PageArgs& pages = args.pages;
  alignas(64) float scores[NQ][kAttentionChunk];
  alignas(64) float values[NQ][kMaxHeadDim];
  int n[NQ], longest = 0;
  for (int i = 0; i < NQ; ++i) {
    n[i] = query[i].limit - base < kAttentionChunk ? query[i].limit - base : kAttentionChunk;
    if (n[i] < 0) n[i] = 0;
    longest = n[i] > longest ? n[i] : longest;
  }
  for (int j = 0; j < longest; j += kPage) {
    float* page_rows[NQ];
    for (int i = 0; i < NQ; ++i) page_rows[i] = scores[i] + j;
    page_scores<S, NQ>(query, key_page<T>(pages, segment, kv_head, base + j), pages.head_dim,
                       page_rows);
  }
  float max[NQ] = {}, sum[NQ] = {};
  const float* e[NQ];
  for (int i = 0; i < NQ; ++i) {
    e[i] = scores[i];
    if (n[i] > 0) chunk_softmax<S>(scores[i], n[i], args.scale, max[i], sum[i]);
  }
  constexpr int N = S::kProductVectors;
  int d0 = 0;
  for (; d0 + 16 * N <= pages.v_stride; d0 += 16 * N)
    chunk_values<S, T, NQ, N>(pages, segment, kv_head, base, n, e, d0, values);
  for (; d0 < pages.v_stride; d0 += 16)
    chunk_values<S, T, NQ, 1>(pages, segment, kv_head, base, n, e, d0, values);
  for (int i = 0; i < NQ; ++i)
    if (n[i] > 0) merge_chunk<S>(query[i], max[i], sum[i], values[i], pages.head_dim, base == 0);
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

// All queries see a chunk, a few at a time, before the next chunk is read: it stays in the cache.
template <class S, class T>
inline void attend(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                   QueryState* query, int count) {
  static_assert(kQueryBlock == 4);
  // Limits ascend.
  for (int base = 0; base < query[count - 1].limit; base += kAttentionChunk) {
    for (int i = 0; i < count; i += kQueryBlock) {
      const int n = count - i < kQueryBlock ? count - i : kQueryBlock;
      if (query[i + n - 1].limit <= base) continue;
      if (n == 4) attend_chunk<S, T, 4>(args, segment, kv_head, base, query + i);
      if (n == 3) attend_chunk<S, T, 3>(args, segment, kv_head, base, query + i);
      if (n == 2) attend_chunk<S, T, 2>(args, segment, kv_head, base, query + i);
      if (n == 1) attend_chunk<S, T, 1>(args, segment, kv_head, base, query + i);
    }
  }
  for (int i = 0; i < count; ++i) finish_query<S>(query[i], args.pages.head_dim);
}

template <class S, class T>
void attend_tokens(const AttentionArgs& args, const SegmentArgs& segment, int kv_head,
                   int token_begin, int token_end) {
  constexpr int kMost = 32 * kQueryBlock;  // queries side by side: a few kilobytes
  const HeadRange heads = query_heads(args, kv_head);
  QueryState queries[kMost];
  int count = 0;
  for (int token = token_begin; token < token_end; ++token) {
    for (int head = heads.begin; head < heads.end; ++head) {
      if (count == kMost) {
        attend<S, T>(args, segment, kv_head, queries, count);
        count = 0;
      }
      const std::int64_t slot = static_cast<std::int64_t>(segment.row + token) * args.heads + head;
      queries[count++] = {args.q + slot * args.head_pad,
                          args.out + slot * args.head_pad,
                          args.stats == nullptr ? nullptr : args.stats + 2 * slot,
                          segment.start + token + 1,
                          0.0f,
                          0.0f};
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

}  // namespace taper::detail
