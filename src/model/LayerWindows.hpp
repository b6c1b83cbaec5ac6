// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/Layer.hpp"

namespace taper {

// Approximate forward passes on several ranks at once, for draft models (EasySpec: Layer-Parallel
// Speculative Decoding, arXiv 2502.02493, section 3): the attention of all layers of a window reads
// the window's input, a layer on each rank; their outputs are exchanged, and the MLPs follow one
// after the other on every rank, each on the stream that it would see. The first and the last layer
// are computed exactly.
class LayerWindows {
 public:
  // Every rank of `group` holds the whole model.
  LayerWindows(const Group& group, int layers);

  // Floats of memory for calls of up to `rows` rows.
  static std::int64_t floats(const Group& group, int hidden, int rows);

  // x (rows, h) becomes the stream behind the last layer. The context is that of this rank alone.
  // Of keys and values, each rank writes those of its layers only. Collective over the group.
  void forward(const LayerContext& context, const ModelView& view, const PagedLayers& pages,
               const LayerActivations& acts, FloatMatrix x, float* memory) const;

 private:
  void forward_window(const LayerContext& context, const ModelView& view, const PagedLayers& pages,
                      const LayerActivations& acts, Range window, FloatMatrix x,
                      float* memory) const;

  const Group* group_;
  std::vector<Range> windows_;  // of one layer: exact
};

}  // namespace taper
