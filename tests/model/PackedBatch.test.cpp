// SPDX-License-Identifier: Apache-2.0
#include "model/PackedBatch.hpp"

#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <set>

using namespace taper;

namespace {

// Sequences of these lengths; token i of all has id i.
PackedSequences sequences_of(const std::vector<int>& lengths) {
  PackedSequences s;
  s.lengths = lengths;
  s.ids.resize(std::accumulate(lengths.begin(), lengths.end(), 0));
  std::iota(s.ids.begin(), s.ids.end(), 0);
  return s;
}

// Pages that a segment reads.
int pages_of(const AttentionSegment& segment) {
  return (segment.start + segment.count + kPage - 1) / kPage;
}

}  // namespace

TEST_CASE("every sequence starts at position 0 and has rows and pages of its own") {
  const std::vector<int> lengths{3, kPage, kPage + 6, 1};
  PackedBatch packed(nullptr, 0, 0);
  packed.set(Exec(), sequences_of(lengths));
  const TokenBatch& batch = packed.batch();
  REQUIRE(batch.rows() == 3 + kPage + kPage + 6 + 1);
  REQUIRE(batch.segments.size() == lengths.size());
  const std::int64_t pages = PackedBatch::pages(batch.rows(), 4);
  std::set<int> taken;
  int row = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const AttentionSegment& segment = batch.segments(i);
    CHECK(segment.row == row);
    CHECK(segment.start == 0);
    CHECK(segment.count == lengths[i]);
    for (int p = 0; p < lengths[i]; ++p, ++row) {
      CHECK(batch.ids(row) == row);
      CHECK(batch.positions(row) == p);
    }
    for (int page = 0; page < pages_of(segment); ++page) {
      CHECK(segment.blocks[page] >= 0);
      CHECK(segment.blocks[page] < pages);
      CHECK(taken.insert(segment.blocks[page]).second);  // no other sequence has it
    }
  }
}

TEST_CASE("a batch is that of the sequences that were set last") {
  PackedBatch packed(nullptr, 0, 0);
  packed.set(Exec(), sequences_of({kPage, 5, 7}));
  packed.set(Exec(), sequences_of({4}));
  CHECK(packed.batch().rows() == 4);
  CHECK(packed.batch().positions.size() == 4);
  REQUIRE(packed.batch().segments.size() == 1);
  CHECK(packed.batch().segments(0).count == 4);
}

TEST_CASE("the pages of so many tokens and sequences are enough however long each one is") {
  for (const int sequences : {1, 2, 5})
    for (int longest = 1; longest <= 2 * kPage + 1; ++longest) {
      std::vector<int> lengths(sequences, 1);
      lengths.back() = longest;
      if (sequences > 2) lengths.front() = kPage + 1;
      std::int64_t needed = 0;
      for (const int length : lengths) needed += (length + kPage - 1) / kPage;
      const int rows = std::accumulate(lengths.begin(), lengths.end(), 0);
      CHECK(needed <= PackedBatch::pages(rows, sequences));
      CHECK(PackedBatch::pages(rows, sequences) <= needed + sequences);
    }
}

TEST_CASE("a page of a layer has the keys and values of all heads of the shard") {
  ModelConfig c;
  c.layers = 1;
  c.hidden = 48;
  c.heads = 6;
  c.kv_heads = 3;
  c.head_dim = 24;
  c.intermediate = 200;
  c.vocab = 130;
  c.max_positions = 64;
  const ParamTable table(c);
  const ActivationShape shape(table, ModelShard(table, 3, 1)),
      whole(table, ModelShard(table, 1, 0));
  const std::int64_t page = layer_page_floats(shape, 24, KvType::kF32);
  CHECK(page == kPage * (24 + 32));  // values stand in whole registers
  CHECK(layer_page_floats(shape, 24, KvType::kBf16) == kPage * 32);
  CHECK(layer_page_floats(whole, 24, KvType::kF32) == 3 * page);
  std::vector<float> memory(static_cast<std::size_t>(2 * 3 * page));
  const LayerPages pages = make_layer_pages(whole, 24, KvType::kF32, memory.data());
  CHECK(pages.kv == memory.data());
  CHECK(pages.block_stride == 3 * page);
  CHECK(pages.head_stride == page);
}
