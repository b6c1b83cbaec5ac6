// SPDX-License-Identifier: Apache-2.0
//
// The steps of fused.hpp that are one kernel in any arithmetic, with the operations of
// canonical/norm.hpp and canonical/rope.hpp.
#pragma once

#include "base/Bf16.hpp"
#include "kernels/detail/attention_device.inl.hpp"
#include "kernels/detail/norm_device.inl.hpp"
#include "kernels/fused.hpp"

namespace taper::detail {

// A team has one query head, or one key with its value.
template <class E>
void device_norm_heads(const E& exec, const HeadNorm<E>& query, const HeadNorm<E>& key_value,
                       const AttentionShape& shape, float eps) {
  const int heads = shape.heads, kv_heads = shape.kv_heads, pad = shape.head_pad;
  const NormShape norm{shape.head_dim, pad, eps};
  const int rows = static_cast<int>(query.x.size() / static_cast<std::size_t>(pad * heads));
  for_vectors(
      "taper::norm_heads", exec, rows * (heads + kv_heads), shape.head_dim,
      KOKKOS_LAMBDA(const Team& team, const NormScratch& scratch) {
        const int row = team.league_rank() / (heads + kv_heads),
                  head = team.league_rank() % (heads + kv_heads);
        if (head < heads) {
          const std::int64_t at = std::int64_t{row} * heads + head;
          norm_vector<E>(team, scratch, query.y, query.inv, query.x, query.gain, at, at * pad,
                         norm);
          return;
        }
        const std::int64_t at = std::int64_t{row} * kv_heads + head - heads;
        norm_vector<E>(team, scratch, key_value.y, key_value.inv, key_value.x, key_value.gain, at,
                       at * 2 * pad, norm);
        team_for(team, 2 * pad - norm.width, [&](const int i) {
          const std::int64_t rest = at * 2 * pad + norm.width + i;
          key_value.y(rest) = key_value.x(rest);
        });
      });
}

// A thread has pair or element d of a query head, or of a key and its value.
template <class E>
void device_rotate_and_write(const E& exec, MatrixView<float, E> q, MatrixView<float, E> kv,
                             MatrixView<const float, E> table, const PageArgs& pages,
                             const AttentionGrid& grid, const AttentionShape& shape) {
  const int heads = shape.heads, pad = shape.head_pad, head_dim = shape.head_dim,
            half = head_dim / 2, width = pages.v_stride;
  const std::int64_t vectors = std::int64_t{grid.count} * grid.longest * grid.heads;
  device_for_each(
      "taper::rotate_and_write", exec, vectors * width, KOKKOS_LAMBDA(const std::int64_t i) {
        const int d = static_cast<int>(i % width);
        const std::int64_t vector = i / width;
        const int head = static_cast<int>(vector % grid.heads);
        const SegmentArgs segment =
            grid.segments[vector / (std::int64_t{grid.longest} * grid.heads)];
        const int t = static_cast<int>(vector / grid.heads % grid.longest);
        if (t >= segment.count) return;
        const int row = segment.row + t, position = segment.start + t, slot = position % kPage;
        const float* angles = &table(position, 0);
        if (head < heads) {
          if (d < half) rotate_pair(&q(row, head * pad), angles, half, d, 1.0f);
          return;
        }
        const int kv_head = head - heads;
        float* k = &kv(row, kv_head * 2 * pad);
        float* page = page_of(pages, segment, kv_head, position);
        if (d < half) {
          rotate_pair(k, angles, half, d, 1.0f);
          write_key(pages, page, slot, d, k[d]);
          write_key(pages, page, slot, half + d, k[half + d]);
        } else if (d >= head_dim) {
          write_key(pages, page, slot, d, 0.0f);
        }
        write_value(pages, page, slot, d, d < head_dim ? k[pad + d] : 0.0f);
      });
}

}  // namespace taper::detail
