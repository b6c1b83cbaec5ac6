// SPDX-License-Identifier: Apache-2.0
#include "kvcache/BlockPool.hpp"

#include <algorithm>

#include "kernels/product.hpp"

namespace taper {
namespace {
constexpr const char* kItem = "keys and values (rollout)";
}

void BlockPool::plan(MemoryPlan& plan, MemoryPhase phase, const BlockShape& shape, int blocks) {
  plan.add(kItem, phase, blocks * shape.bytes());
}

BlockPool::BlockPool(const BlockShape& shape, int blocks, Arena& arena, MemoryPhase phase)
    : shape_(shape),
      blocks_(blocks),
      memory_(arena.take<float>(kItem, phase, blocks * shape.floats())) {}

PagedLayers BlockPool::pages() const {
  const std::int64_t page = page_floats(shape_.head_dim);
  return {{memory_, shape_.floats(), page, shape_.head_dim, round_up(shape_.head_dim, 16)},
          shape_.kv_heads * page};
}

void BlockPool::copy(std::int32_t to, std::int32_t from) {
  std::copy_n(memory_ + from * shape_.floats(), shape_.floats(), memory_ + to * shape_.floats());
}

}  // namespace taper
