// SPDX-License-Identifier: Apache-2.0
#include "model/LayerWindows.hpp"

#include <algorithm>

#include "kernels/activation.hpp"
#include "kernels/copy.hpp"
#include "model/DeviceCollectives.hpp"

namespace taper {

LayerWindows::LayerWindows(const Group& group, int layers) : group_(&group) {
  for (int begin = 0; begin < layers;) {
    const bool is_outer = begin == 0 || begin == layers - 1;
    const int end = is_outer ? begin + 1 : std::min(begin + group.size(), layers - 1);
    windows_.push_back({begin, end});
    begin = end;
  }
}

std::int64_t LayerWindows::floats(const Group& group, int hidden, int rows) {
  return (group.size() + 2) * aligned_floats(std::int64_t{rows} * hidden);
}

void LayerWindows::forward(const LayerContext& c, const ModelView& view, const PagedLayers& pages,
                           const LayerActivations& a, FloatMatrix x, float* memory) const {
  for (const Range& window : windows_)
    if (window.size() == 1)
      forward_layer(c, view.layer(window.begin), pages.layer(window.begin), a, x, x);
    else
      forward_window(c, view, pages, a, window, x, memory);
}

void LayerWindows::forward_window(const LayerContext& c, const ModelView& view,
                                  const PagedLayers& pages, const LayerActivations& a, Range window,
                                  FloatMatrix x, float* memory) const {
  const auto size = static_cast<std::int64_t>(x.extent(0) * x.extent(1));
  float *zero = memory, *mine = zero + aligned_floats(size), *all = mine + aligned_floats(size);
  const auto matrix = [&](float* data) { return FloatMatrix(data, x.extent(0), x.extent(1)); };
  // A window at the end may have fewer layers than there are ranks.
  std::vector<std::int64_t> counts(static_cast<std::size_t>(group_->size()), 0);
  std::fill_n(counts.begin(), window.size(), size);
  const int layer = window.begin + group_->rank();
  const std::int64_t own = counts[static_cast<std::size_t>(group_->rank())];
  if (own > 0) {
    fill(c.exec, flat(matrix(zero)), 0.0f);
    attend(c, view.layer(layer), pages.layer(layer), a, matrix(mine), matrix(zero), x);
  }
  all_gather_v(c.exec, *group_, FloatVector(all, static_cast<std::size_t>(window.size() * size)),
               ConstFloatVector(mine, static_cast<std::size_t>(own)), counts);
  for (int l = window.begin; l < window.end; ++l) {
    add(c.exec, flat(x), flat(ConstFloatMatrix(x)),
        flat(ConstFloatMatrix(matrix(all + (l - window.begin) * size))));
    apply_mlp(c, view.layer(l), a, x, x);
  }
}

}  // namespace taper
