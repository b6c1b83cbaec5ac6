// SPDX-License-Identifier: Apache-2.0
//
// The arguments of attention from those of its launchers, the same on the host and on a device.
#pragma once

#include <cmath>

#include "kernels/attention.hpp"
#include "kernels/detail/Attention.hpp"

namespace taper::detail {

// The segments of one launch on a device, of which one has at most so many tokens and sees so many
// keys, and the heads of one token.
struct AttentionGrid {
  const SegmentArgs* segments;
  int count, longest, most_keys, heads;
  AttentionScratch scratch;
};

// Segments are staged: the host may read what it has put there.
template <class Segments>
AttentionGrid attention_grid(const Segments& segments, int heads) {
  AttentionGrid grid{segments.data(), static_cast<int>(segments.size()), 0, 0, heads,
                     segments.scratch};
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const SegmentArgs& segment = segments(s);
    const int keys = segment.start + segment.count;
    grid.longest = segment.count > grid.longest ? segment.count : grid.longest;
    grid.most_keys = keys > grid.most_keys ? keys : grid.most_keys;
  }
  return grid;
}

template <class Out, class Stats, class Q>
AttentionArgs attention_args(const Out& out, const Stats& stats, const Q& q,
                             const LayerPages& pages, const AttentionShape& shape) {
  AttentionArgs args;
  args.pages = pages;
  args.q = q.data();
  // The backward pass only reads them; its arguments are shared with the pass that writes them.
  args.out = const_cast<float*>(out.data());
  args.stats = const_cast<float*>(stats.data());
  args.heads = shape.heads;
  args.kv_heads = shape.kv_heads;
  args.group = shape.group;
  args.head_offset = shape.head_offset;
  args.head_pad = shape.head_pad;
  args.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  return args;
}

template <class Matrix, class Const>
AttentionBackwardArgs attention_backward_args(const Matrix& dq, const Matrix& dkv,
                                              const Const& dout, const Const& out,
                                              const Const& stats, const Const& q,
                                              const LayerPages& pages,
                                              const AttentionShape& shape) {
  AttentionBackwardArgs args;
  args.forward = attention_args(out, stats, q, pages, shape);
  args.dout = dout.data();
  args.dq = dq.data();
  args.dkv = dkv.data();
  return args;
}

}  // namespace taper::detail
