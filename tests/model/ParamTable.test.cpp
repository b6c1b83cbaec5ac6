// SPDX-License-Identifier: Apache-2.0
#include "model/ParamTable.hpp"

#include <catch2/catch_test_macros.hpp>

#include "kernels/Exec.hpp"

using namespace taper;

namespace {

ModelConfig config(ModelFamily family, bool tied) {
  ModelConfig c;
  c.family = family;
  c.layers = 2;
  c.hidden = 48;
  c.heads = 6;
  c.kv_heads = 2;
  c.head_dim = 24;
  c.intermediate = 100;
  c.vocab = 130;
  c.max_positions = 64;
  c.tied = tied;
  c.qkv_bias = family == ModelFamily::kQwen2;
  c.qk_norm = family == ModelFamily::kQwen3;
  return c;
}

}  // namespace

TEST_CASE("rows that no parameter fills are padding, and only those") {
  for (const auto family : {ModelFamily::kLlama, ModelFamily::kQwen2, ModelFamily::kQwen3})
    for (const int kind : {0, 1, 2}) {
      ModelConfig c = config(family, kind == 1);
      if (kind == 2) c.output = OutputHead::kScalar;
      const ParamTable table(c);
      std::int64_t filled = 0;
      for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t)
        for (int u = 0; u < table.tensors()[t].units; ++u)
          for (int r = 0; r < table.tensors()[t].unit_rows; ++r)
            if (!table.is_padding(t, u, r)) filled += table.tensors()[t].columns;
      CHECK(filled == c.parameters());
    }
}

TEST_CASE("tensors are found by role and layer, and by their pieces") {
  const ParamTable llama(config(ModelFamily::kLlama, true)),
      qwen(config(ModelFamily::kQwen3, false));
  CHECK(llama.index_of(ParamRole::kHead) == -1);
  CHECK(llama.index_of(ParamRole::kQueryBias, 0) == -1);
  CHECK(qwen.index_of(ParamRole::kHead) == static_cast<int>(qwen.tensors().size()) - 1);
  CHECK(qwen.tensors()[qwen.index_of(ParamRole::kKeyNorm, 1)].columns == 24);
  for (int t = 0; t < static_cast<int>(qwen.tensors().size()); ++t) {
    CHECK(qwen.tensor_of_piece(qwen.first_piece(t)) == t);
    CHECK(qwen.tensor_of_piece(qwen.first_piece(t) + qwen.tensors()[t].units - 1) == t);
    CHECK(qwen.index_of(qwen.tensors()[t].role, qwen.tensors()[t].layer) == t);
  }
  const std::vector<std::int64_t> bytes = qwen.piece_bytes();
  REQUIRE(std::ssize(bytes) == qwen.pieces());
  for (int piece = 0; piece < qwen.pieces(); ++piece)
    CHECK(bytes[static_cast<std::size_t>(piece)] ==
          4 * qwen.tensors()[qwen.tensor_of_piece(piece)].unit_size());
  ModelConfig scalar = config(ModelFamily::kQwen3, false);
  scalar.output = OutputHead::kScalar;
  const ParamTable reward(scalar);
  CHECK(reward.index_of(ParamRole::kHead) == -1);
  const ParamTensor& score = reward.tensors()[reward.index_of(ParamRole::kScore)];
  CHECK(score.kind == ShardKind::kReplicated);
  CHECK(score.unit_size() == 48);
  CHECK(qwen.head_pad() == 64);
  CHECK(qwen.mlp_blocks() == 2);
  CHECK(qwen.vocab_blocks() == 3);
}

TEST_CASE("leaves are wide on GPUs alone, and only where there are many") {
  ModelConfig c = config(ModelFamily::kLlama, true);
  CHECK(leaf_blocks(c).mlp == 1);
  CHECK(leaf_blocks(c).vocab == 1);
  c.intermediate = 8192;
  c.vocab = 8191;
  CHECK(leaf_blocks(c).mlp == (kOnHost ? 1 : 4));
  CHECK(leaf_blocks(c).vocab == 1);
  CHECK(ParamTable(c).leaf_blocks().mlp == leaf_blocks(c).mlp);
}
