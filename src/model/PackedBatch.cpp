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
  const int rows = sequences.rows();
  TAPER_EXPECT(std::accumulate(sequences.lengths.begin(), sequences.lengths.end(), 0) == rows);
  ids_.assign(sequences.ids.begin(), sequences.ids.end());
  positions_.clear();
  segments_.clear();
  blocks_.resize(static_cast<std::size_t>(pages(rows, static_cast<int>(sequences.lengths.size()))));
  std::iota(blocks_.begin(), blocks_.end(), 0);
  int row = 0, block = 0;
  for (const int length : sequences.lengths) {
    segments_.push_back({blocks_.data() + block, 0, length, row});
    for (int p = 0; p < length; ++p) positions_.push_back(p);
    row += length;
    block += (length + kPage - 1) / kPage;
  }
  batch_ =
      device_.bring(exec, {staging_view(ids_), staging_view(positions_), staging_view(segments_)});
}

std::int64_t layer_page_floats(const ActivationShape& shape, int head_dim, KvType type) {
  return shape.kv_heads * page_floats(head_dim, type);
}

LayerPages make_layer_pages(const ActivationShape& shape, int head_dim, KvType type,
                            float* memory) {
  return make_pages(memory, shape.kv_heads, head_dim, type);
}

}  // namespace taper
