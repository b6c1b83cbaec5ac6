// SPDX-License-Identifier: Apache-2.0
#include "model/PackedBatch.hpp"

#include <numeric>

#include "base/Error.hpp"

namespace taper {

std::int64_t PackedBatch::pages(int rows, int sequences) {
  return std::int64_t{rows} / kPage + sequences;
}

void PackedBatch::set(const Exec& exec, const PackedSequences& sequences) {
  exec.fence();  // the kernels of the last batch may still read it, those of a backward pass too
  const int rows = sequences.rows(), count = static_cast<int>(sequences.lengths.size());
  TAPER_EXPECT(std::accumulate(sequences.lengths.begin(), sequences.lengths.end(), 0) == rows);
  ids_.assign(sequences.ids.begin(), sequences.ids.end());
  positions_.clear();
  segments_.clear();
  blocks_.resize(static_cast<std::size_t>(pages(sequences.positions(), count)));
  std::iota(blocks_.begin(), blocks_.end(), 0);
  int row = 0, block = 0, shift = 0;
  for (int s = 0; s < count; ++s) {
    const int length = sequences.lengths[s],
              start = sequences.shared.empty() ? 0 : sequences.shared[s];
    segments_.push_back({blocks_.data() + block, start, length, row, shift});
    for (int p = 0; p < length; ++p) positions_.push_back(start + p);
    row += length;
    shift += start;
    block += (start + length + kPage - 1) / kPage;
  }
  batch_ =
      device_.bring(exec, {staging_view(ids_), staging_view(positions_), staging_view(segments_)});
  if (shift > 0) share_prefixes();
}

void PackedBatch::share_prefixes() {
  prefixes_.clear();
  rows_.clear();
  int root = 0;  // row of the sequence whose first tokens are shared
  for (const AttentionSegment& segment : segments_) {
    if (segment.start == 0)
      root = segment.row;
    else
      prefixes_.push_back({segment.blocks, 0, segment.start, root});
    for (int p = 0; p < segment.start; ++p) rows_.push_back(root + p);
    for (int t = 0; t < segment.count; ++t) rows_.push_back(segment.row + t);
  }
  batch_.shared = {staging_view(prefixes_), staging_view(rows_)};
}

std::int64_t layer_page_floats(const ActivationShape& shape, int head_dim, KvType type) {
  return shape.kv_heads * page_floats(head_dim, type);
}

LayerPages make_layer_pages(const ActivationShape& shape, int head_dim, KvType type,
                            float* memory) {
  return make_pages(memory, shape.kv_heads, head_dim, type);
}

}  // namespace taper
