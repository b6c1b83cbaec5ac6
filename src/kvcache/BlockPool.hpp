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

  std::int64_t floats() const { return std::int64_t{layers} * kv_heads * page_floats(head_dim); }
  std::int64_t bytes() const { return floats() * static_cast<std::int64_t>(sizeof(float)); }
};

// The memory of the KV cache: (blocks, layers, kv_heads, page).
class BlockPool {
 public:
  static void plan(MemoryPlan& plan, MemoryPhase phase, const BlockShape& shape, int blocks);
  BlockPool(const BlockShape& shape, int blocks, Arena& arena, MemoryPhase phase);

  int blocks() const { return blocks_; }
  const BlockShape& shape() const { return shape_; }
  PagedLayers pages() const;
  // Copies all layers of a block.
  void copy(std::int32_t to, std::int32_t from);

 private:
  BlockShape shape_;
  int blocks_;
  float* memory_;
};

}  // namespace taper
