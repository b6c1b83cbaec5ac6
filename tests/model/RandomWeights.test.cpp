// SPDX-License-Identifier: Apache-2.0
#include "model/RandomWeights.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "support/Bits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

ModelConfig config() {
  ModelConfig c;
  c.family = ModelFamily::kQwen3;
  c.layers = 8;
  c.hidden = 96;
  c.heads = 6;
  c.kv_heads = 2;
  c.head_dim = 24;
  c.intermediate = 100;
  c.vocab = 130;
  c.max_positions = 64;
  c.qk_norm = true;
  return c;
}

std::vector<float> drawn(const ParamTable& table, int piece, std::uint64_t seed = 1) {
  const ParamTensor& tensor = table.tensors()[table.tensor_of_piece(piece)];
  std::vector<float> weights(static_cast<std::size_t>(tensor.unit_size()), -7.0f);
  draw_piece(table, piece, seed, weights);
  return weights;
}

double deviation_of(const std::vector<float>& weights) {
  double squares = 0;
  for (const float w : weights) squares += double(w) * w;
  return std::sqrt(squares / static_cast<double>(weights.size()));
}

// Of the weights that are not padding.
std::vector<float> drawn_tensor(const ParamTable& table, ParamRole role, int layer) {
  const int index = table.index_of(role, layer);
  const ParamTensor& tensor = table.tensors()[index];
  std::vector<float> all;
  for (int unit = 0; unit < tensor.units; ++unit) {
    const auto weights = drawn(table, table.first_piece(index) + unit);
    for (int row = 0; row < tensor.unit_rows; ++row) {
      const auto begin = weights.begin() + std::int64_t{row} * tensor.columns;
      if (!table.is_padding(index, unit, row))
        all.insert(all.end(), begin, begin + tensor.columns);
      else
        CHECK(std::all_of(begin, begin + tensor.columns, [](float w) { return w == 0.0f; }));
    }
  }
  return all;
}

}  // namespace

TEST_CASE("drawn weights have the deviation of their role, and padding is zero") {
  const ParamTable table(config());
  for (const ParamRole role : {ParamRole::kQuery, ParamRole::kKeyValue, ParamRole::kGateUp}) {
    CHECK(std::abs(deviation_of(drawn_tensor(table, role, 3)) / 0.02 - 1) < 0.05);
  }
  for (const ParamRole role : {ParamRole::kOutput, ParamRole::kDown})
    CHECK(std::abs(deviation_of(drawn_tensor(table, role, 3)) / (0.02 / 4) - 1) < 0.05);
  CHECK(std::abs(deviation_of(drawn_tensor(table, ParamRole::kEmbedding, -1)) / 0.02 - 1) < 0.05);
  for (const ParamRole role : {ParamRole::kInputNorm, ParamRole::kQueryNorm}) {
    const auto norm = drawn_tensor(table, role, 3);
    CHECK(norm == std::vector<float>(norm.size(), 1.0f));
  }
}

TEST_CASE("a piece is drawn from the seed and its number alone") {
  const ParamTable table(config());
  const int piece = table.first_piece(table.index_of(ParamRole::kQuery, 2));
  const auto weights = drawn(table, piece);
  (void)drawn(table, piece + 1);
  CHECK(same_bits(drawn(table, piece), weights));
  CHECK(!same_bits(drawn(table, piece + 1), weights));
  CHECK(!same_bits(drawn(table, piece, 2), weights));
}

TEST_CASE("a drawn head is small, the same for a seed, and another for another") {
  std::vector<float> a(4096), b(4096), c(4096);
  draw_score(1, a);
  draw_score(1, b);
  draw_score(2, c);
  CHECK(same_bits(a, b));
  CHECK(!same_bits(a, c));
  CHECK(std::abs(deviation_of(a) * 4097 - 1) < 0.05);
  ModelConfig reward = config();
  reward.output = OutputHead::kScalar;
  const ParamTable table(reward);
  std::vector<float> head(static_cast<std::size_t>(reward.hidden));
  draw_score(1, head);
  CHECK(same_bits(drawn(table, table.pieces() - 1), head));
}
