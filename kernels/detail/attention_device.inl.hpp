// SPDX-License-Identifier: Apache-2.0
//
// Attention over pages for any execution space, in the order of canonical/attention.hpp. A team
// computes one query: threads share out the keys of a chunk, then the elements of the value sums.
// The backward pass goes over queries once for dQ and over keys once for dK and dV, so that each
// element is one chain that one thread adds.
#pragma once

#include "base/Bf16.hpp"
#include "kernels/attention.hpp"
#include "kernels/detail/Attention.hpp"
#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/DeviceMath.hpp"
#include "kernels/detail/attention_args.hpp"

namespace taper::detail {

inline constexpr int kAttentionThreads = 64;

// Element d of the key and of the value in a slot of a page; beyond the head there is padding.
KOKKOS_INLINE_FUNCTION void write_key(const PageArgs& pages, float* page, int slot, int d,
                                      float value) {
  if (pages.type == KvType::kBf16)
    reinterpret_cast<bf16*>(page)[slot * pages.v_stride + d] = to_bf16(value);
  else if (d < pages.head_dim)
    page[d * kPage + slot] = value;
}
KOKKOS_INLINE_FUNCTION void write_value(const PageArgs& pages, float* page, int slot, int d,
                                        float value) {
  if (pages.type == KvType::kBf16)
    reinterpret_cast<bf16*>(page)[(kPage + slot) * pages.v_stride + d] = to_bf16(value);
  else
    page[static_cast<std::int64_t>(pages.head_dim) * kPage + slot * pages.v_stride + d] = value;
}

// A key or value of one position of a sequence.
struct DevicePage {
  const float* keys;    // (head_dim, kPage)
  const float* values;  // (kPage, v_stride)
  int slot;

  KOKKOS_INLINE_FUNCTION DevicePage(const PageArgs& pages, const SegmentArgs& segment, int kv_head,
                                    int position) {
    keys = page_of(pages, segment, kv_head, position);
    values = keys + static_cast<std::int64_t>(pages.head_dim) * kPage;
    slot = position % kPage;
  }
  KOKKOS_INLINE_FUNCTION float key(int d) const { return keys[d * kPage + slot]; }
  KOKKOS_INLINE_FUNCTION float value(const PageArgs& pages, int d) const {
    return values[slot * pages.v_stride + d];
  }
};

KOKKOS_INLINE_FUNCTION float score_of(const PageArgs& pages, const DevicePage& page, const float* q,
                                      float scale) {
  float chain = 0.0f;
  for (int d = 0; d < pages.head_dim; ++d) chain = Kokkos::fma(q[d], page.key(d), chain);
  return chain * scale;
}

// The sum of n numbers in sixteen lane chains and their tree; all threads get it.
KOKKOS_INLINE_FUNCTION float team_lane_sum(const Team& team, float* lanes, const float* x, int n) {
  team_for(team, kDeviceLanes, [&](const int lane) {
    float chain = 0.0f;
    for (int i = lane; i < n; i += kDeviceLanes) chain += x[i];
    lanes[lane] = chain;
  });
  team.team_barrier();
  const float sum = device_sum_lanes(lanes);
  team.team_barrier();
  return sum;
}

// Scores of the keys [base, base + n), then their exponentials; returns maximum and sum.
struct ChunkSoftmax {
  float max, sum;
};
KOKKOS_INLINE_FUNCTION ChunkSoftmax chunk_softmax(const Team& team, float* e, float* lanes,
                                                  const AttentionArgs& args,
                                                  const SegmentArgs& segment, int kv_head,
                                                  const float* q, int base, int n) {
  team_for(team, n, [&](const int j) {
    e[j] = score_of(args.pages, DevicePage(args.pages, segment, kv_head, base + j), q, args.scale);
  });
  team.team_barrier();
  float max = e[0];  // a maximum has the same bits in any order
  for (int j = 1; j < n; ++j) max = e[j] > max ? e[j] : max;
  team.team_barrier();
  team_for(team, n, [&](const int j) { e[j] = device_exp(e[j] - max); });
  team.team_barrier();
  return {max, team_lane_sum(team, lanes, e, n)};
}

KOKKOS_INLINE_FUNCTION void attend(const Team& team, float* e, float* lanes,
                                   const AttentionArgs& args, const SegmentArgs& segment, int head,
                                   int token) {
  const int kv_head = (head + args.head_offset) / args.group;
  const int head_dim = args.pages.head_dim, visible = segment.start + token + 1;
  const std::int64_t vector = static_cast<std::int64_t>(segment.row + token) * args.heads + head;
  const float* q = args.q + vector * args.head_pad;
  float* out = args.out + vector * args.head_pad;
  ChunkSoftmax total{};
  for (int base = 0; base < visible; base += kAttentionChunk) {
    const int n = visible - base < kAttentionChunk ? visible - base : kAttentionChunk;
    const ChunkSoftmax chunk = chunk_softmax(team, e, lanes, args, segment, kv_head, q, base, n);
    const float top = base == 0 || chunk.max > total.max ? chunk.max : total.max;
    const float old_factor = base == 0 ? 0.0f : device_exp(total.max - top);
    const float new_factor = base == 0 ? 1.0f : device_exp(chunk.max - top);
    team_for(team, head_dim, [&](const int d) {
      float chain = 0.0f;
      for (int j = 0; j < n; ++j)
        chain = Kokkos::fma(
            e[j], DevicePage(args.pages, segment, kv_head, base + j).value(args.pages, d), chain);
      out[d] = base == 0 ? chain : out[d] * old_factor + chain * new_factor;
    });
    total = base == 0 ? chunk : ChunkSoftmax{top, total.sum * old_factor + chunk.sum * new_factor};
    team.team_barrier();  // e is written again
  }
  team_for(team, head_dim, [&](const int d) { out[d] /= total.sum; });
  if (args.stats != nullptr)
    once(team, [&] {
      args.stats[vector * 2] = total.max;
      args.stats[vector * 2 + 1] = total.sum;
    });
}

template <class E>
void device_attention(const E& exec, const AttentionArgs& args, const AttentionGrid& grid) {
  const std::int64_t teams = std::int64_t{grid.count} * grid.longest * grid.heads;
  device_for_teams(
      "taper::attention", exec, teams, kAttentionThreads,
      (kAttentionChunk + kDeviceLanes) * sizeof(float), KOKKOS_LAMBDA(const Team& team) {
        const int i = team.league_rank();
        const SegmentArgs segment = grid.segments[i / (grid.longest * grid.heads)];
        const int token = i / grid.heads % grid.longest;
        if (token >= segment.count) return;
        Scratch scratch(team);
        float* e = scratch.take<float>(kAttentionChunk);
        attend(team, e, scratch.take<float>(kDeviceLanes), args, segment, i % grid.heads, token);
      });
}

template <class E>
void device_write_pages(const E& exec, const PageArgs& pages, const float* kv,
                        const AttentionGrid& grid, int head_pad) {
  const std::int64_t vectors = std::int64_t{grid.count} * grid.longest * grid.heads;
  const int kv_heads = grid.heads, width = pages.v_stride;
  device_for_each(
      "taper::write_pages", exec, vectors * width, KOKKOS_LAMBDA(const std::int64_t i) {
        const int d = static_cast<int>(i % width);
        const std::int64_t vector = i / width;
        const SegmentArgs segment = grid.segments[vector / (std::int64_t{grid.longest} * kv_heads)];
        const int t = static_cast<int>(vector / kv_heads % grid.longest);
        const int head = static_cast<int>(vector % kv_heads);
        if (t >= segment.count) return;
        const int position = segment.start + t, slot = position % kPage;
        float* page = page_of(pages, segment, head, position);
        const float* k =
            kv + (static_cast<std::int64_t>(segment.row + t) * kv_heads + head) * 2 * head_pad;
        const bool inside = d < pages.head_dim;
        write_key(pages, page, slot, d, inside ? k[d] : 0.0f);
        write_value(pages, page, slot, d, inside ? k[head_pad + d] : 0.0f);
      });
}

// What a query and a key give to the gradients.
struct PairGradient {
  float weight, dscore;
};
struct QueryState {
  const float *q, *dout;
  float max, inverse_sum, dot;
};

KOKKOS_INLINE_FUNCTION QueryState query_state(const AttentionBackwardArgs& args,
                                              std::int64_t vector) {
  const AttentionArgs& f = args.forward;
  const int head_dim = f.pages.head_dim;
  const float *out = f.out + vector * f.head_pad, *dout = args.dout + vector * f.head_pad;
  float lanes[kDeviceLanes] = {};
  for (int d = 0; d < head_dim; ++d)
    lanes[d % kDeviceLanes] = Kokkos::fma(out[d], dout[d], lanes[d % kDeviceLanes]);
  return {f.q + vector * f.head_pad, dout, f.stats[vector * 2], 1.0f / f.stats[vector * 2 + 1],
          device_sum_lanes(lanes)};
}

KOKKOS_INLINE_FUNCTION PairGradient pair_gradient(const AttentionArgs& args,
                                                  const QueryState& query, const DevicePage& page) {
  const float weight =
      device_exp(score_of(args.pages, page, query.q, args.scale) - query.max) * query.inverse_sum;
  float dweight = 0.0f;
  for (int d = 0; d < args.pages.head_dim; ++d)
    dweight = Kokkos::fma(query.dout[d], page.value(args.pages, d), dweight);
  return {weight, weight * (dweight - query.dot) * args.scale};
}

// dQ of one query: the chain goes over its keys in ascending order.
template <class E>
void device_attention_dq(const E& exec, const AttentionBackwardArgs& args,
                         const AttentionGrid& grid) {
  const std::int64_t teams = std::int64_t{grid.count} * grid.longest * grid.heads;
  device_for_teams(
      "taper::attention_dq", exec, teams, kAttentionThreads, kAttentionChunk * sizeof(float),
      KOKKOS_LAMBDA(const Team& team) {
        const AttentionArgs& f = args.forward;
        const int i = team.league_rank(), head = i % grid.heads;
        const SegmentArgs segment = grid.segments[i / (grid.longest * grid.heads)];
        const int token = i / grid.heads % grid.longest;
        if (token >= segment.count) return;
        Scratch scratch(team);
        float* dscores = scratch.take<float>(kAttentionChunk);
        const int kv_head = (head + f.head_offset) / f.group, head_dim = f.pages.head_dim;
        const std::int64_t vector = static_cast<std::int64_t>(segment.row + token) * f.heads + head;
        const QueryState query = query_state(args, vector);
        float* dq = args.dq + vector * f.head_pad;
        team_for(team, f.head_pad, [&](const int d) { dq[d] = 0.0f; });
        const int visible = segment.start + token + 1;
        for (int base = 0; base < visible; base += kAttentionChunk) {
          const int n = visible - base < kAttentionChunk ? visible - base : kAttentionChunk;
          team.team_barrier();
          team_for(team, n, [&](const int j) {
            dscores[j] =
                pair_gradient(f, query, DevicePage(f.pages, segment, kv_head, base + j)).dscore;
          });
          team.team_barrier();
          team_for(team, head_dim, [&](const int d) {
            float chain = dq[d];
            for (int j = 0; j < n; ++j)
              chain = Kokkos::fma(dscores[j],
                                  DevicePage(f.pages, segment, kv_head, base + j).key(d), chain);
            dq[d] = chain;
          });
        }
      });
}

// dK and dV of one key: the chains go over tokens, and query heads within a token, ascending.
template <class E>
void device_attention_dkv(const E& exec, const AttentionBackwardArgs& args,
                          const AttentionGrid& grid) {
  const int kv_heads = args.forward.kv_heads;
  const std::int64_t teams = std::int64_t{grid.count} * grid.most_keys * kv_heads;
  device_for_teams(
      "taper::attention_dkv", exec, teams, kAttentionThreads,
      kAttentionThreads * sizeof(PairGradient), KOKKOS_LAMBDA(const Team& team) {
        const AttentionArgs& f = args.forward;
        const int i = team.league_rank(), kv_head = i % kv_heads;
        const SegmentArgs segment = grid.segments[i / (grid.most_keys * kv_heads)];
        const int key = i / kv_heads % grid.most_keys;
        if (key >= segment.start + segment.count) return;
        Scratch scratch(team);
        auto* pairs = scratch.take<PairGradient>(kAttentionThreads);
        const HeadRange heads = query_heads(f, kv_head);
        const int group = heads.end - heads.begin, head_dim = f.pages.head_dim;
        const DevicePage page(f.pages, segment, kv_head, key);
        float* dk = args.dkv + (gradient_row(segment, key) * kv_heads + kv_head) * 2 * f.head_pad;
        float* dv = dk + f.head_pad;
        team_for(team, 2 * f.head_pad, [&](const int d) { dk[d] = 0.0f; });
        const int first = first_query(segment, key), all = (segment.count - first) * group;
        const auto vector_of = [&](const int p) {
          return static_cast<std::int64_t>(segment.row + first + p / group) * f.heads +
                 heads.begin + p % group;
        };
        for (int base = 0; base < all; base += kAttentionThreads) {
          const int n = all - base < kAttentionThreads ? all - base : kAttentionThreads;
          team.team_barrier();
          team_for(team, n, [&](const int p) {
            pairs[p] = pair_gradient(f, query_state(args, vector_of(base + p)), page);
          });
          team.team_barrier();
          team_for(team, head_dim, [&](const int d) {
            float k = dk[d], v = dv[d];
            for (int p = 0; p < n; ++p) {
              const std::int64_t at = vector_of(base + p) * f.head_pad + d;
              k = Kokkos::fma(f.q[at], pairs[p].dscore, k);
              v = Kokkos::fma(pairs[p].weight, args.dout[at], v);
            }
            dk[d] = k;
            dv[d] = v;
          });
        }
      });
}

}  // namespace taper::detail
