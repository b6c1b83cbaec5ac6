// SPDX-License-Identifier: Apache-2.0
#include "model/Activations.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>

using namespace taper;

namespace {

ParamTable table(bool qk_norm = false) {
  ModelConfig c;
  c.layers = 2;
  c.hidden = 48;
  c.heads = 6;
  c.kv_heads = 2;
  c.head_dim = 24;
  c.intermediate = 400;
  c.vocab = 400;
  c.max_positions = 64;
  c.qk_norm = qk_norm;
  return ParamTable(c);
}

// All arrays of so many rows.
std::vector<FloatVector> arrays(const LayerActivations& a, int rows) {
  return {flat(a.normed1(rows)),
          flat(a.query_raw(rows)),
          flat(a.query(rows)),
          flat(a.key_value_raw(rows)),
          flat(a.key_value(rows)),
          flat(a.attended(rows)),
          flat(a.stats(rows)),
          flat(a.mid(rows)),
          flat(a.normed2(rows)),
          flat(a.gate_up(rows)),
          flat(a.act(rows)),
          a.inv1(rows),
          a.inv2(rows),
          a.query_inv(rows),
          a.key_inv(rows)};
}

}  // namespace

TEST_CASE("the widths of all shards are together those of the whole model") {
  const ParamTable t = table();
  const ActivationShape whole(t, ModelShard(t, 1, 0));
  CHECK(whole.query == 6 * t.head_pad());
  CHECK(whole.key_value == 2 * 2 * t.head_pad());
  CHECK(whole.mlp == t.mlp_blocks() * kMlpBlock);
  for (const int degree : {2, 3, 4}) {
    int query = 0, mlp = 0, heads = 0;
    for (int i = 0; i < degree; ++i) {
      const ActivationShape shape(t, ModelShard(t, degree, i));
      CHECK(shape.hidden == 48);
      CHECK(shape.attention.heads == shape.heads);
      CHECK(shape.attention.kv_heads == shape.kv_heads);
      query += shape.query;
      mlp += shape.mlp;
      heads += shape.heads;
    }
    CHECK(query == whole.query);
    CHECK(mlp == whole.mlp);
    CHECK(heads == whole.heads);
  }
}

TEST_CASE("query heads of a shard read their KV head, also where the shard begins inside a group") {
  const ParamTable t = table();
  for (const int degree : {1, 2, 3, 4, 6})
    for (int i = 0; i < degree; ++i) {
      INFO("shard " << i << " of " << degree);
      const ModelShard shard(t, degree, i);
      const AttentionShape attention = ActivationShape(t, shard).attention;
      for (int head = 0; head < attention.heads; ++head) {
        const int local = (head + attention.head_offset) / attention.group;
        CHECK(local < attention.kv_heads);
        CHECK(shard.kv_heads().begin + local == (shard.heads().begin + head) / 3);
      }
    }
}

TEST_CASE("the arrays of a layer lie apart in the floats that they ask for") {
  const ParamTable t = table(true);
  const ActivationShape shape(t, ModelShard(t, 2, 1));
  constexpr int kRows = 7;
  const auto floats = static_cast<std::size_t>(LayerActivations::floats(shape, kRows));
  std::vector<float> memory(floats + 1, -1.0f);
  const LayerActivations activations(shape, kRows, memory.data());
  const auto list = arrays(activations, kRows);
  for (std::size_t i = 0; i < list.size(); ++i)
    std::fill_n(list[i].data(), list[i].size(), static_cast<float>(i));
  for (std::size_t i = 0; i < list.size(); ++i) {
    INFO("array " << i);
    REQUIRE(list[i].size() > 0);
    CHECK(std::count(list[i].data(), list[i].data() + list[i].size(), static_cast<float>(i)) ==
          static_cast<std::ptrdiff_t>(list[i].size()));
  }
  CHECK(memory.back() == -1.0f);
}

TEST_CASE("without norms over heads the raw queries, keys and values are not kept") {
  const ParamTable plain = table(false), normed = table(true);
  const ActivationShape shape(plain, ModelShard(plain, 1, 0)),
      more(normed, ModelShard(normed, 1, 0));
  CHECK(LayerActivations::floats(shape, 16) + 16 * (shape.query + shape.key_value) ==
        LayerActivations::floats(more, 16));
  std::vector<float> memory(static_cast<std::size_t>(LayerActivations::floats(shape, 16)));
  const LayerActivations activations(shape, 16, memory.data());
  CHECK(activations.query_raw(16).data() == activations.query(16).data());
  CHECK(activations.key_value_raw(3).data() == activations.key_value(3).data());
  CHECK(activations.query(3).extent_int(0) == 3);
  CHECK(activations.query(3).extent_int(1) == shape.query);
}
