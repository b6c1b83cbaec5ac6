// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/Arena.hpp"
#include "kernels/attention.hpp"

namespace taper {

// The shape of a block: 64 positions of all layers and local KV heads. A page, one (layer, KV head)
// of it, looks the same for every tensor-parallel degree.
struct BlockShape {
  int layers = 0;
  int kv_heads = 0;  // local
  int head_dim = 0;
  KvType type = KvType::kF32;

  std::int64_t page() const { return page_floats(head_dim, type); }
  std::int64_t layer_floats() const { return kv_heads * page(); }
  std::int64_t floats() const { return layers * layer_floats(); }
  std::int64_t bytes() const { return floats() * static_cast<std::int64_t>(sizeof(float)); }
};

// The memory of a KV cache, in one region per layer. The regions keep their addresses when the
// cache is used with another shape, so a layout can be changed layer by layer.
struct KvMemory {
  float* data = nullptr;
  std::int64_t layer_stride = 0;  // floats
};

// The pages of the KV cache: (layers, blocks, kv_heads, page) in a KvMemory.
class BlockPool {
 public:
  static void add_memory(MemoryPlan& plan, MemoryPhase phase, int layers,
                         std::int64_t layer_stride);
  static KvMemory take(Arena& arena, MemoryPhase phase, int layers, std::int64_t layer_stride);

  // Throws Error if the blocks need more than a layer's region.
  BlockPool(const BlockShape& shape, int blocks, const KvMemory& memory);

  int blocks() const { return blocks_; }
  const BlockShape& shape() const { return shape_; }
  PagedLayers pages() const;
  // The page of a local KV head, shape().page() floats.
  float* page(int layer, std::int32_t block, int head) const {
    return memory_.data + layer * memory_.layer_stride + block * shape_.layer_floats() +
           head * shape_.page();
  }
  // Copies all layers of a block.
  void copy(const Exec& exec, std::int32_t to, std::int32_t from) const;

 private:
  BlockShape shape_;
  int blocks_;
  KvMemory memory_;
};

}  // namespace taper
