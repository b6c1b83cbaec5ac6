// SPDX-License-Identifier: Apache-2.0
#include "kvcache/BlockPool.hpp"

#include <algorithm>
#include <vector>

#include "base/Error.hpp"
#include "kernels/Staging.hpp"
#include "kernels/copy.hpp"

namespace taper {
namespace {
constexpr const char* kItem = "keys and values (generation)";
}

// The strides of all layouts that the engine may run in are covered by one, the largest.
void BlockPool::add_memory(MemoryPlan& plan, MemoryPhase phase, int layers,
                           std::int64_t layer_stride) {
  plan.add(kItem, phase, layers * layer_stride * static_cast<std::int64_t>(sizeof(float)));
}

KvMemory BlockPool::take(Arena& arena, MemoryPhase phase, int layers, std::int64_t layer_stride) {
  return {arena.take<float>(kItem, phase, layers * layer_stride), layer_stride};
}

BlockPool::BlockPool(const BlockShape& shape, int blocks, const KvMemory& memory)
    : shape_(shape), blocks_(blocks), memory_(memory) {
  // Every layout is planned before the arena is made; one that were not would write into the region
  // of the next layer.
  TAPER_INSIST(
      blocks * shape.layer_floats() <= memory.layer_stride,
      "a KV cache of " << blocks << " blocks of " << shape.kv_heads << " heads (its memory holds "
                       << memory.layer_stride / std::max<std::int64_t>(1, shape.layer_floats())
                       << "); plan it larger");
}

PagedLayers BlockPool::pages() const {
  return {make_pages(memory_.data, shape_.kv_heads, shape_.head_dim, shape_.type),
          memory_.layer_stride};
}

void BlockPool::copy(const Exec& exec, std::int32_t to, std::int32_t from) const {
  // The heads of a block lie side by side, so each layer is one stretch of memory.
  Staged<BlockCopy> layers;
  for (int l = 0; l < shape_.layers; ++l) layers.push_back({page(l, to, 0), page(l, from, 0)});
  copy_blocks(exec, staging_view(layers), shape_.layer_floats());
}

}  // namespace taper
