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
      : arena(plan(shape, blocks)),
        memory(BlockPool::take(arena, MemoryPhase::kAlways, shape.layers,
                               blocks * shape.layer_floats())),
        pool(shape, blocks, memory) {}

  static MemoryPlan plan(const BlockShape& shape, int blocks) {
    MemoryPlan plan;
    BlockPool::add_memory(plan, MemoryPhase::kAlways, shape.layers, blocks * shape.layer_floats());
    return plan;
  }

  Arena arena;
  KvMemory memory;
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
  CHECK(Pool::plan(shape, 5).bytes(MemoryPhase::kAlways) == 5 * shape.bytes());
  const BlockShape bf16{3, 2, 24, KvType::kBf16};
  CHECK(bf16.bytes() == 2 * 3 * 2 * (64 * 32 + 64 * 32));  // rows of K too
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
      for (int h = 0; h < shape.kv_heads; ++h) {
        starts.insert(page(p.pool, b, l, h) - base);
        CHECK(p.pool.page(l, b, h) == page(p.pool, b, l, h));
      }
  REQUIRE(starts.size() == static_cast<std::size_t>(kBlocks) * 3 * 2);
  std::int64_t expected = 0;
  for (const auto start : starts) {
    CHECK(start == expected);
    expected += page_floats(shape.head_dim, KvType::kF32);
  }
  CHECK(expected == kBlocks * shape.floats());
  CHECK(p.pool.pages().first.v_stride == 32);
}

TEST_CASE("copying a block copies all layers and heads and nothing else") {
  const BlockShape shape{2, 3, 16};
  constexpr int kBlocks = 4;
  Pool p(shape, kBlocks);
  const std::int64_t floats = shape.layer_floats(), layer = kBlocks * floats;
  for (std::int64_t i = 0; i < shape.layers * layer; ++i) p.memory.data[i] = static_cast<float>(i);
  p.pool.copy(HostExec(), 2, 0);
  for (std::int64_t i = 0; i < shape.layers * layer; ++i) {
    const std::int64_t source = i % layer / floats == 2 ? i - 2 * floats : i;
    REQUIRE(p.memory.data[i] == static_cast<float>(source));
  }
}

TEST_CASE("another shape sees the same regions of layers") {
  Pool p({3, 2, 16}, 5);
  const BlockShape narrow{3, 1, 16};
  const BlockPool other(narrow, 10, p.memory);
  for (int l = 0; l < 3; ++l) {
    CHECK(other.page(l, 0, 0) == p.pool.page(l, 0, 0));
    CHECK(other.page(l, 9, 0) == p.pool.page(l, 4, 1));
  }
  CHECK_THROWS_AS(BlockPool(narrow, 11, p.memory), Error);
}

TEST_CASE("a pool that was planned smaller is refused") {
  const BlockShape shape{2, 1, 16};
  Arena arena(Pool::plan(shape, 3));
  CHECK_THROWS_AS(BlockPool::take(arena, MemoryPhase::kAlways, 2, 4 * shape.layer_floats()), Error);
}
