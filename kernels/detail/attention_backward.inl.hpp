// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/Bf16.hpp"
#include "kernels/detail/Attention.hpp"
#include "kernels/detail/Lanes.hpp"
#include "kernels/detail/attention.inl.hpp"

namespace taper::detail {

// One page of keys and values in both orders, and the gradients that are gathered for it.
template <int kDim>
struct PageGradient {
  alignas(64) float k_rows[kPage][kDim];     // token-major K
  alignas(64) float v_columns[kDim][kPage];  // d-major V
  alignas(64) float dk_columns[kDim][kPage];
  alignas(64) float dv_rows[kPage][kDim];
};

// One query vector on its way through a page; the first n keys of the page are visible.
struct BackwardQuery {
  const float* q;
  const float* dout;
  float* dq;
  float max, inverse_sum;
  float dot;  // of out and dout
  int n;
};

// out[i][j] = sum over d of x[i][d] * columns[d][j]
template <class S, int NQ, class T>
inline void times_columns(const float* const (&x)[NQ], const T* columns, int head_dim,
                          float (*out)[kPage]) {
  constexpr int N = S::kProductVectors;
  for (int j = 0; j < kPage; j += 16 * N) {
    typename S::V acc[NQ][N];
#pragma GCC unroll 4
    for (int i = 0; i < NQ; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[i][v] = S::zero();
    for (int d = 0; d < head_dim; ++d) {
      typename S::V column[N];
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) column[v] = S::load(columns + d * kPage + j + 16 * v);
#pragma GCC unroll 4
      for (int i = 0; i < NQ; ++i) {
        const typename S::V factor = S::set1(x[i][d]);
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) acc[i][v] = S::fma(factor, column[v], acc[i][v]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < NQ; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) S::store(out[i] + j + 16 * v, acc[i][v]);
  }
}

// p: scores -> weights; ds: gradients by weight -> gradients by score. Zero if the key is not
// visible.
template <class S>
inline void score_gradients(const BackwardQuery& query, float scale, float* p, float* ds) {
  using V = typename S::V;
  for (int j = 0; j < kPage; j += 16) {
    const int lanes = query.n - j < 0 ? 0 : (query.n - j < 16 ? query.n - j : 16);
    const V e = exp<S>(S::sub(S::mul(S::load(p + j), S::set1(scale)), S::set1(query.max)));
    const V weight = S::keep_first(S::mul(e, S::set1(query.inverse_sum)), lanes, S::zero());
    const V d = S::mul(S::mul(weight, S::sub(S::load(ds + j), S::set1(query.dot))), S::set1(scale));
    S::store(p + j, weight);
    S::store(ds + j, S::keep_first(d, lanes, S::zero()));
  }
}

// dk[d][j] += q[i][d] * ds[i][j], queries in ascending order.
template <class S, int NQ>
inline void add_key_gradients(const BackwardQuery (&query)[NQ], const float (*ds)[kPage],
                              int head_dim, float* dk_columns) {
  using V = typename S::V;
  for (int j = 0; j < kPage; j += 16) {
    V slope[NQ];
#pragma GCC unroll 4
    for (int i = 0; i < NQ; ++i) slope[i] = S::load(ds[i] + j);
    for (int d = 0; d < head_dim; ++d) {
      float* dk = dk_columns + d * kPage + j;
      V sum = S::load(dk);
#pragma GCC unroll 4
      for (int i = 0; i < NQ; ++i) sum = S::fma(S::set1(query[i].q[d]), slope[i], sum);
      S::store(dk, sum);
    }
  }
}

// dv[j][d] += p[i][j] * dout[i][d] for N vectors of d from d0, queries in ascending order. Queries
// that do not see a key have weight zero and come first, while the sum is still zero: they leave no
// trace.
template <class S, int NQ, int N, int kDim>
inline void add_value_gradients(const BackwardQuery (&query)[NQ], const float (*p)[kPage],
                                int head_dim, int d0, float (*dv_rows)[kDim]) {
  using V = typename S::V;
  V upstream[NQ][N];
  int keys = 0;
#pragma GCC unroll 4
  for (int i = 0; i < NQ; ++i) {
    keys = query[i].n > keys ? query[i].n : keys;
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      const int d = d0 + 16 * v, lanes = head_dim - d < 16 ? head_dim - d : 16;
      upstream[i][v] = S::load_n(query[i].dout + d, lanes);
    }
  }
  for (int j = 0; j < keys; ++j) {
    V sum[N];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) sum[v] = S::load(&dv_rows[j][d0 + 16 * v]);
#pragma GCC unroll 4
    for (int i = 0; i < NQ; ++i) {
      const V weight = S::set1(p[i][j]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) sum[v] = S::fma(weight, upstream[i][v], sum[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) S::store(&dv_rows[j][d0 + 16 * v], sum[v]);
  }
}

// dq[i][d] += ds[i][j] * k[j][d] over visible keys in ascending order, for N vectors of d from d0.
template <class S, int NQ, int N, int kDim>
inline void add_query_gradients(const BackwardQuery (&query)[NQ], const float (*ds)[kPage],
                                int head_dim, int d0, const float (*k_rows)[kDim]) {
  using V = typename S::V;
  const auto lanes = [&](int v) {
    return head_dim - d0 - 16 * v < 16 ? head_dim - d0 - 16 * v : 16;
  };
  V acc[NQ][N];
  int common = query[0].n;
#pragma GCC unroll 4
  for (int i = 0; i < NQ; ++i) {
    common = query[i].n < common ? query[i].n : common;
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) acc[i][v] = S::load_n(query[i].dq + d0 + 16 * v, lanes(v));
  }
  for (int j = 0; j < common; ++j) {
    V key[N];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) key[v] = S::load(&k_rows[j][d0 + 16 * v]);
#pragma GCC unroll 4
    for (int i = 0; i < NQ; ++i) {
      const V slope = S::set1(ds[i][j]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[i][v] = S::fma(slope, key[v], acc[i][v]);
    }
  }
  for (int i = 0; i < NQ; ++i)
    for (int v = 0; v < N; ++v) {
      V alone = acc[i][v];
      for (int j = common; j < query[i].n; ++j)
        alone = S::fma(S::set1(ds[i][j]), S::load(&k_rows[j][d0 + 16 * v]), alone);
      S::store_n(query[i].dq + d0 + 16 * v, alone, lanes(v));
    }
}

// What NQ query vectors give to and take from one page.
template <class S, int NQ, int kDim, class T>
inline void backward_block(const AttentionArgs& f, const T* k_page, PageGradient<kDim>& page,
                           const BackwardQuery* first) {
  constexpr int N = S::kProductVectors;
  const int head_dim = f.pages.head_dim;
  alignas(64) float p[NQ][kPage], ds[NQ][kPage];
  BackwardQuery query[NQ];
  const float *q[NQ], *dout[NQ];
  for (int i = 0; i < NQ; ++i) {
    query[i] = first[i];
    q[i] = first[i].q;
    dout[i] = first[i].dout;
  }
  times_columns<S, NQ>(q, k_page, head_dim, p);
  times_columns<S, NQ>(dout, &page.v_columns[0][0], head_dim, ds);
  for (int i = 0; i < NQ; ++i) score_gradients<S>(query[i], f.scale, p[i], ds[i]);
  add_key_gradients<S, NQ>(query, ds, head_dim, &page.dk_columns[0][0]);
  int d0 = 0;
  for (; d0 + 16 * N <= f.pages.v_stride; d0 += 16 * N) {
    add_value_gradients<S, NQ, N, kDim>(query, p, head_dim, d0, page.dv_rows);
    add_query_gradients<S, NQ, N, kDim>(query, ds, head_dim, d0, page.k_rows);
  }
  for (; d0 < f.pages.v_stride; d0 += 16) {
    add_value_gradients<S, NQ, 1, kDim>(query, p, head_dim, d0, page.dv_rows);
    add_query_gradients<S, NQ, 1, kDim>(query, ds, head_dim, d0, page.k_rows);
  }
}

template <class S>
inline BackwardQuery backward_query(const AttentionBackwardArgs& args, std::int64_t slot, int n) {
  const AttentionArgs& f = args.forward;
  const float* out = f.out + slot * f.head_pad;
  const float* dout = args.dout + slot * f.head_pad;
  typename S::V product = S::zero();
  for (int d = 0; d < f.pages.head_dim; d += 16) {
    const int lanes = f.pages.head_dim - d < 16 ? f.pages.head_dim - d : 16;
    product = S::fma(S::load_n(out + d, lanes), S::load_n(dout + d, lanes), product);
  }
  return {f.q + slot * f.head_pad,
          dout,
          args.dq + slot * f.head_pad,
          f.stats[2 * slot],
          1.0f / f.stats[2 * slot + 1],
          sum_lanes<S>(product),
          n};
}

template <class S, int kDim, class T>
void attention_backward_head(const AttentionBackwardArgs& args, const SegmentArgs& segment,
                             int kv_head) {
  const AttentionArgs& f = args.forward;
  const PageArgs& pages = f.pages;
  const HeadRange heads = query_heads(f, kv_head);
  PageGradient<kDim> page;
  const auto slot_of = [&](int token, int head) {
    return static_cast<std::int64_t>(segment.row + token) * f.heads + head;
  };
  for (int token = 0; token < segment.count; ++token)
    for (int head = heads.begin; head < heads.end; ++head)
      for (int d = 0; d < f.head_pad; ++d) args.dq[slot_of(token, head) * f.head_pad + d] = 0.0f;
  const int end = segment.start + segment.count;
  for (int base = 0; base < end; base += kPage) {
    const int keys = end - base < kPage ? end - base : kPage;
    const T* k_page = key_page<T>(pages, segment, kv_head, base);
    const T* v_rows = value_page<T>(pages, segment, kv_head, base);
    for (int d = 0; d < kDim; ++d)
      for (int j = 0; j < kPage; ++j) {
        const bool inside = d < pages.head_dim && j < keys;
        page.k_rows[j][d] = inside ? to_float(k_page[d * kPage + j]) : 0.0f;
        page.v_columns[d][j] = inside ? to_float(v_rows[j * pages.v_stride + d]) : 0.0f;
        page.dk_columns[d][j] = 0.0f;
        page.dv_rows[j][d] = 0.0f;
      }
    BackwardQuery block[kQueryBlock];
    int filled = 0;
    const auto flush = [&] {
      if (filled == 4) backward_block<S, 4, kDim>(f, k_page, page, block);
      if (filled == 3) backward_block<S, 3, kDim>(f, k_page, page, block);
      if (filled == 2) backward_block<S, 2, kDim>(f, k_page, page, block);
      if (filled == 1) backward_block<S, 1, kDim>(f, k_page, page, block);
      filled = 0;
    };
    for (int token = first_query(segment, base); token < segment.count; ++token)
      for (int head = heads.begin; head < heads.end; ++head) {
        const int before = segment.start + token + 1 - base;
        const int visible = before < keys ? before : keys;
        block[filled++] = backward_query<S>(args, slot_of(token, head), visible);
        if (filled == kQueryBlock) flush();
      }
    flush();
    for (int j = 0; j < keys; ++j) {
      float* dk =
          args.dkv + (gradient_row(segment, base + j) * f.kv_heads + kv_head) * 2 * f.head_pad;
      float* dv = dk + f.head_pad;
      for (int d = 0; d < f.head_pad; ++d) {
        dk[d] = d < pages.head_dim ? page.dk_columns[d][j] : 0.0f;
        dv[d] = d < pages.head_dim ? page.dv_rows[j][d] : 0.0f;
      }
    }
  }
}

template <class S, class T>
void attention_backward_tokens(const AttentionBackwardArgs& args, const SegmentArgs& segment,
                               int kv_head) {
  if (args.forward.pages.head_dim <= 64)
    attention_backward_head<S, 64, T>(args, segment, kv_head);
  else if (args.forward.pages.head_dim <= 128)
    attention_backward_head<S, 128, T>(args, segment, kv_head);
  else
    attention_backward_head<S, kMaxHeadDim, T>(args, segment, kv_head);
}

// One task: all tokens of a segment, one KV head.
template <class S>
void attention_backward_task(const AttentionBackwardArgs& args, const SegmentArgs& segment,
                             int kv_head) {
  args.forward.pages.type == KvType::kBf16
      ? attention_backward_tokens<S, bf16>(args, segment, kv_head)
      : attention_backward_tokens<S, float>(args, segment, kv_head);
}

}  // namespace taper::detail
