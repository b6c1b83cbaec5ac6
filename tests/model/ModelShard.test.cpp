// SPDX-License-Identifier: Apache-2.0
#include "model/ModelShard.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"

using namespace taper;

namespace {

ModelConfig config(int heads, int kv_heads) {
  ModelConfig c;
  c.layers = 2;
  c.hidden = 64;
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.head_dim = 16;
  c.intermediate = 700;
  c.vocab = 900;
  c.max_positions = 128;
  return c;
}

}  // namespace

TEST_CASE("shards tile query heads, MLP blocks and vocabulary for every degree") {
  for (const auto& [heads, kv_heads] : {std::pair{8, 8}, {8, 2}, {9, 3}, {6, 1}}) {
    const ParamTable table(config(heads, kv_heads));
    for (int degree = 1; degree <= heads; ++degree) {
      INFO(heads << " heads, " << kv_heads << " KV heads, degree " << degree);
      Range before{};
      std::vector<int> holders(kv_heads, 0);
      for (int i = 0; i < degree; ++i) {
        const ModelShard shard(table, degree, i);
        CHECK(shard.heads().begin == before.end);
        CHECK_FALSE(shard.heads().empty());
        before = shard.heads();
        // The KV heads held are those that the local query heads read.
        const int group = heads / kv_heads;
        CHECK(shard.kv_heads().begin == shard.heads().begin / group);
        CHECK(shard.kv_heads().end == (shard.heads().end - 1) / group + 1);
        for (int u = shard.kv_heads().begin; u < shard.kv_heads().end; ++u) ++holders[u];
        if (i == 0) CHECK(shard.vocab().begin == 0);
        if (i + 1 == degree) {
          CHECK(shard.heads().end == heads);
          CHECK(shard.blocks().end == table.mlp_blocks());
          CHECK(shard.vocab().end == table.vocab_blocks());
        }
      }
      for (const int n : holders) {
        CHECK(n >= 1);
        if (degree <= kv_heads) CHECK(n == 1);  // above that they may be shared
      }
    }
  }
}

TEST_CASE("shards never cut a leaf, and nest") {
  const LeafBlocks leaf{4, 2};  // of 11 and 15 blocks
  const ParamTable table(config(8, 8), leaf);
  CHECK(largest_degree(table) == 3);
  for (const int degree : {1, 2, 3}) {
    int block = 0, row = 0;
    for (int i = 0; i < degree; ++i) {
      const ModelShard shard(table, degree, i);
      CHECK(shard.blocks().begin == block);
      CHECK(shard.vocab().begin == row);
      CHECK(block % leaf.mlp == 0);
      CHECK(row % leaf.vocab == 0);
      block = shard.blocks().end;
      row = shard.vocab().end;
      CHECK(shard_of_id(table, degree, shard.vocab().begin * kVocabBlock) == i);
      CHECK(shard_of_id(table, degree, std::min(row * kVocabBlock, 900) - 1) == i);
    }
    CHECK(block == table.mlp_blocks());
    CHECK(row == table.vocab_blocks());
  }
  CHECK_THROWS_WITH(ModelShard(table, 4, 0),
                    Catch::Matchers::ContainsSubstring("only 3 blocks of 256 MLP columns"));
}

TEST_CASE("a degree above the units of the model is refused and says how many there are") {
  const ParamTable table(config(6, 2));
  CHECK_NOTHROW(ModelShard(table, 6, 5));
  try {
    ModelShard(table, 7, 0);
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("only 6 query heads") != std::string::npos);
  }
}

TEST_CASE("the vocabulary of a shard ends at the last id of the tokenizer") {
  const ParamTable table(config(8, 8));  // 900 rows are 15 blocks
  const ModelShard first(table, 2, 0), second(table, 2, 1);
  CHECK(first.valid_vocab(900) == 7 * 64);
  CHECK(second.valid_vocab(900) == 900 - 7 * 64);
  CHECK(second.valid_vocab(100) == 0);
  CHECK(first.valid_vocab(100) == 100);
}

TEST_CASE("the local pieces stand in table order without gaps") {
  const ParamTable table(config(6, 2));
  const LocalParams local(table, ModelShard(table, 4, 1));  // shares a KV head with shard 0
  std::int64_t next = 0;
  int last = -1;
  for (const auto& piece : local.pieces()) {
    CHECK(piece.offset == next);
    CHECK(piece.id > last);
    CHECK(piece.size == table.tensors()[table.tensor_of_piece(piece.id)].unit_size());
    next += piece.size;
    last = piece.id;
  }
  CHECK(next == local.size());
  std::size_t at = 0;
  for (std::size_t t = 0; t < table.tensors().size(); ++t)
    for (const auto& piece : local.pieces_of(static_cast<int>(t))) {
      CHECK(&piece == &local.pieces()[at++]);
      CHECK(table.tensor_of_piece(piece.id) == static_cast<int>(t));
    }
  CHECK(at == local.pieces().size());
  const int key_value = table.index_of(ParamRole::kKeyValue, 1);
  CHECK(local.units(key_value) == Range{0, 1});
  CHECK(local.rows(key_value) == 2 * table.head_pad());
  CHECK(local.offset(key_value + 1) - local.offset(key_value) == 2 * table.head_pad() * 64);
}
