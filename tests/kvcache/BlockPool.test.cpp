// SPDX-License-Identifier: Apache-2.0
#include "kvcache/BlockPool.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <set>

#include "base/Error.hpp"

using namespace taper;

namespace {

// A pool with an arena of its own.
struct Pool {
  Pool(const BlockShape& shape, int blocks)
      : arena(plan(shape, blocks)), pool(shape, blocks, arena, MemoryPhase::kRollout) {}

  static MemoryPlan plan(const BlockShape& shape, int blocks) {
    MemoryPlan plan;
    BlockPool::plan(plan, MemoryPhase::kRollout, shape, blocks);
    return plan;
  }

  Arena arena;
  BlockPool pool;
};

// The first float of K or V of a page as the kernels find it.
float* page(const BlockPool& pool, int block, int layer, int head) {
  const LayerPages pages = pool.pages().layer(layer);
  return pages.kv + block * pages.block_stride + head * pages.head_stride;
}

}  // namespace

TEST_CASE("a block holds K and V of 64 positions of all layers and heads") {
  const BlockShape shape{3, 2, 24};
  CHECK(shape.floats() == 3 * 2 * (64 * 24 + 64 * 32));  // rows of V are padded to 16
  CHECK(shape.bytes() == 4 * shape.floats());
  CHECK(Pool::plan(shape, 5).bytes(MemoryPhase::kRollout) == 5 * shape.bytes());
}

TEST_CASE("the pages of a pool are disjoint and fill it") {
  const BlockShape shape{3, 2, 24};
  constexpr int kBlocks = 5;
  Pool p(shape, kBlocks);
  CHECK(p.pool.blocks() == kBlocks);
  std::set<std::int64_t> starts;
  float* const base = page(p.pool, 0, 0, 0);
  for (int b = 0; b < kBlocks; ++b)
    for (int l = 0; l < shape.layers; ++l)
      for (int h = 0; h < shape.kv_heads; ++h) starts.insert(page(p.pool, b, l, h) - base);
  REQUIRE(starts.size() == static_cast<std::size_t>(kBlocks) * 3 * 2);
  std::int64_t expected = 0;
  for (const auto start : starts) {
    CHECK(start == expected);
    expected += page_floats(shape.head_dim);
  }
  CHECK(expected == kBlocks * shape.floats());
  CHECK(p.pool.pages().first.v_stride == 32);
}

TEST_CASE("copying a block copies all layers and heads and nothing else") {
  const BlockShape shape{2, 3, 16};
  constexpr int kBlocks = 4;
  Pool p(shape, kBlocks);
  float* const all = page(p.pool, 0, 0, 0);
  const auto floats = shape.floats();
  for (std::int64_t i = 0; i < kBlocks * floats; ++i) all[i] = static_cast<float>(i);
  p.pool.copy(2, 0);
  for (std::int64_t i = 0; i < kBlocks * floats; ++i) {
    const std::int64_t source = i / floats == 2 ? i - 2 * floats : i;
    REQUIRE(all[i] == static_cast<float>(source));
  }
}

TEST_CASE("a pool that was planned smaller is refused") {
  const BlockShape shape{2, 1, 16};
  Arena arena(Pool::plan(shape, 3));
  CHECK_THROWS_AS(BlockPool(shape, 4, arena, MemoryPhase::kRollout), Error);
}
