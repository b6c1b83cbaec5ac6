// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/detail/Attention.hpp"
#include "kernels/detail/Lanes.hpp"
#include "kernels/detail/attention.inl.hpp"

namespace taper::detail {

// One page of keys and values in both orders, and the gradients that are gathered for it.
template <int kDim>
struct PageGradient {
  alignas(64) float k_rows[kPage][kDim];    // token-major K
  alignas(64) float v_columns[kDim][kPage];  // d-major V
  alignas(64) float dk_columns[kDim][kPage];
  alignas(64) float dv_rows[kPage][kDim];
};

// out[j] = sum over d of x[d] * columns[d][j]
template <class S>
inline void times_columns(const float* x, const float* columns, int head_dim, float* out) {
  typename S::V acc[4] = {S::zero(), S::zero(), S::zero(), S::zero()};
  for (int d = 0; d < head_dim; ++d) {
    const typename S::V factor = S::set1(x[d]);
    for (int v = 0; v < 4; ++v) acc[v] = S::fma(factor, S::load(columns + d * kPage + 16 * v), acc[v]);
  }
  for (int v = 0; v < 4; ++v) S::store(out + 16 * v, acc[v]);
}

// What one query vector gives to and takes from one page; n keys of it are visible.
template <class S, int kDim>
inline void backward_query(const AttentionBackwardArgs& args, const float* k_page, PageGradient<kDim>& page,
                           std::int64_t slot, float dot, int n) {
  using V = typename S::V;
  const AttentionArgs& f = args.forward;
  const int head_dim = f.pages.head_dim;
  const float* q = f.q + slot * f.head_pad;
  const float* dout = args.dout + slot * f.head_pad;
  alignas(64) float p[kPage], ds[kPage];
  times_columns<S>(q, k_page, head_dim, p);
  times_columns<S>(dout, &page.v_columns[0][0], head_dim, ds);
  const V max = S::set1(f.stats[2 * slot]);
  const V inverse_sum = S::set1(1.0f / f.stats[2 * slot + 1]);
  const V scale = S::set1(f.scale);
  for (int j = 0; j < kPage; j += 16) {
    const int lanes = n - j < 0 ? 0 : (n - j < 16 ? n - j : 16);
    const V e = exp<S>(S::sub(S::mul(S::load(p + j), scale), max));
    const V weight = S::keep_first(S::mul(e, inverse_sum), lanes, S::zero());
    const V d = S::mul(S::mul(weight, S::sub(S::load(ds + j), S::set1(dot))), scale);
    S::store(p + j, weight);
    S::store(ds + j, S::keep_first(d, lanes, S::zero()));
  }
  for (int d = 0; d < head_dim; ++d) {
    const V x = S::set1(q[d]);
    for (int j = 0; j < kPage; j += 16)
      S::store(&page.dk_columns[d][j], S::fma(x, S::load(ds + j), S::load(&page.dk_columns[d][j])));
  }
  float* dq = args.dq + slot * f.head_pad;
  for (int d0 = 0; d0 < head_dim; d0 += 16) {
    const int lanes = head_dim - d0 < 16 ? head_dim - d0 : 16;
    const V upstream = S::load_n(dout + d0, lanes);
    V acc = S::load_n(dq + d0, lanes);
    for (int j = 0; j < n; ++j) {
      acc = S::fma(S::set1(ds[j]), S::load(&page.k_rows[j][d0]), acc);
      S::store(&page.dv_rows[j][d0], S::fma(S::set1(p[j]), upstream, S::load(&page.dv_rows[j][d0])));
    }
    S::store_n(dq + d0, acc, lanes);
  }
}

template <class S, int kDim>
void attention_backward_head(const AttentionBackwardArgs& args, const SegmentArgs& segment, int kv_head) {
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
  for (int base = 0; base < segment.count; base += kPage) {
    const int keys = segment.count - base < kPage ? segment.count - base : kPage;
    const float* k_page = pages.kv + segment.blocks[base / kPage] * pages.block_stride + kv_head * pages.head_stride;
    const float* v_rows = k_page + static_cast<std::int64_t>(pages.head_dim) * kPage;
    for (int d = 0; d < kDim; ++d)
      for (int j = 0; j < kPage; ++j) {
        const bool inside = d < pages.head_dim && j < keys;
        page.k_rows[j][d] = inside ? k_page[d * kPage + j] : 0.0f;
        page.v_columns[d][j] = inside ? v_rows[j * pages.v_stride + d] : 0.0f;
        page.dk_columns[d][j] = 0.0f;
        page.dv_rows[j][d] = 0.0f;
      }
    for (int token = base; token < segment.count; ++token)
      for (int head = heads.begin; head < heads.end; ++head) {
        const std::int64_t slot = slot_of(token, head);
        const float* out = f.out + slot * f.head_pad;
        const float* dout = args.dout + slot * f.head_pad;
        typename S::V product = S::zero();
        for (int d = 0; d < pages.head_dim; d += 16) {
          const int lanes = pages.head_dim - d < 16 ? pages.head_dim - d : 16;
          product = S::fma(S::load_n(out + d, lanes), S::load_n(dout + d, lanes), product);
        }
        const int n = token + 1 - base < keys ? token + 1 - base : keys;
        backward_query<S, kDim>(args, k_page, page, slot, sum_lanes<S>(product), n);
      }
    for (int j = 0; j < keys; ++j) {
      float* dk =
          args.dkv + (static_cast<std::int64_t>(segment.row + base + j) * f.kv_heads + kv_head) * 2 * f.head_pad;
      float* dv = dk + f.head_pad;
      for (int d = 0; d < f.head_pad; ++d) {
        dk[d] = d < pages.head_dim ? page.dk_columns[d][j] : 0.0f;
        dv[d] = d < pages.head_dim ? page.dv_rows[j][d] : 0.0f;
      }
    }
  }
}

// One task: all tokens of a segment that starts at position 0, one KV head.
template <class S>
void attention_backward_task(const AttentionBackwardArgs& args, const SegmentArgs& segment, int kv_head) {
  if (args.forward.pages.head_dim <= 64)
    attention_backward_head<S, 64>(args, segment, kv_head);
  else if (args.forward.pages.head_dim <= 128)
    attention_backward_head<S, 128>(args, segment, kv_head);
  else
    attention_backward_head<S, kMaxHeadDim>(args, segment, kv_head);
}

}  // namespace taper::detail
