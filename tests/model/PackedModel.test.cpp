// SPDX-License-Identifier: Apache-2.0
#include "model/PackedModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Bf16.hpp"
#include "base/Error.hpp"
#include "model/RandomFloats.hpp"

using namespace taper;
using namespace taper::test;

namespace {

ModelConfig config() {
  ModelConfig c;
  c.family = ModelFamily::kQwen2;
  c.layers = 2;
  c.hidden = 48;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 24;
  c.intermediate = 250;
  c.vocab = 250;
  c.max_positions = 64;
  c.qkv_bias = true;
  return c;
}

// Random numbers of the whole model, of which a shard packs its part.
struct Packed {
  Packed(const ParamTable& table, int degree, int index, WeightType type = WeightType::kF32,
         WithBackward backward = WithBackward::kYes)
      : shard(table, degree, index),
        local(table, shard),
        arena(plan(local, type, backward)),
        model("test", local, shard, type, backward, arena) {
    for (const auto& piece : local.pieces()) {
      const auto numbers = random_floats(piece.size, static_cast<std::uint64_t>(piece.id));
      values.insert(values.end(), numbers.begin(), numbers.end());
    }
    for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t)
      model.pack(HostExec(), t, values.data() + local.offset(t));
  }
  static MemoryPlan plan(const LocalParams& local, WeightType type, WithBackward backward) {
    MemoryPlan plan;
    PackedModel::add_memory(plan, "test", local, type, backward);
    return plan;
  }
  // Stored row `row` of a tensor.
  const float* row(int tensor, int row) const {
    const int columns = local.table().tensors()[tensor].columns;
    return values.data() + local.offset(tensor) + std::int64_t{row} * columns;
  }

  ModelShard shard;
  LocalParams local;
  Arena arena;
  PackedModel model;
  std::vector<float> values;
};

// The weight from input k to an output column.
float weight(const PackedMatrix& m, int k, int column) {
  const std::int64_t at =
      column / kPanelColumns * m.panel_stride + k * kPanelColumns + column % kPanelColumns;
  return m.type == WeightType::kF32 ? static_cast<const float*>(m.data)[at]
                                    : to_float(static_cast<const bf16*>(m.data)[at]);
}

bool same(const PackedMatrix& a, const PackedMatrix& b) {
  if (a.columns != b.columns || a.k != b.k) return false;
  for (int k = 0; k < a.k; ++k)
    for (int c = 0; c < a.columns; ++c)
      if (weight(a, k, c) != weight(b, k, c)) return false;
  return true;
}

bool same(ConstFloatVector a, ConstFloatVector b) {
  return a.size() == b.size() && std::equal(a.data(), a.data() + a.size(), b.data());
}

}  // namespace

TEST_CASE(
    "stored rows are outputs of queries and inputs of down projections, backward the reverse") {
  const ParamTable table(config());
  const Packed p(table, 2, 1);
  const int query = table.index_of(ParamRole::kQuery, 1),
            down = table.index_of(ParamRole::kDown, 1);
  REQUIRE(p.model.forward(query).columns == p.local.rows(query));
  REQUIRE(p.model.forward(query).k == 48);
  REQUIRE(p.model.forward(down).columns == 48);
  REQUIRE(p.model.forward(down).k == p.local.rows(down));
  for (int row = 0; row < p.local.rows(query); ++row)
    for (int i = 0; i < 48; ++i) {
      REQUIRE(weight(p.model.forward(query), i, row) == p.row(query, row)[i]);
      REQUIRE(weight(p.model.backward(query), row, i) == p.row(query, row)[i]);
    }
  for (int row = 0; row < p.local.rows(down); ++row)
    for (int i = 0; i < 48; ++i) {
      REQUIRE(weight(p.model.forward(down), row, i) == p.row(down, row)[i]);
      REQUIRE(weight(p.model.backward(down), i, row) == p.row(down, row)[i]);
    }
}

TEST_CASE("matrices are rounded to the forward type, norms and biases stay f32") {
  const ParamTable table(config());
  const Packed p(table, 1, 0, WeightType::kBf16);
  const int output = table.index_of(ParamRole::kOutput, 0),
            bias = table.index_of(ParamRole::kQueryBias, 0);
  int rounded = 0;
  for (int row = 0; row < p.local.rows(output); ++row)
    for (int i = 0; i < 48; ++i) {
      const float exact = p.row(output, row)[i];
      REQUIRE(weight(p.model.forward(output), row, i) == to_float(to_bf16(exact)));
      rounded += weight(p.model.forward(output), row, i) != exact;
    }
  CHECK(rounded > 0);
  REQUIRE(static_cast<int>(p.model.vector(bias).size()) == p.local.rows(bias));
  CHECK(same(p.model.vector(bias), ConstFloatVector(p.row(bias, 0), p.local.rows(bias))));
}

TEST_CASE("without backward there are no transposed weights, and none are planned") {
  const ParamTable table(config());
  const Packed p(table, 1, 0, WeightType::kBf16, WithBackward::kNo);
  const ModelView view(p.model, p.shard);
  CHECK(view.layer(0).query.data != nullptr);
  CHECK(view.layer(0).query_t.data == nullptr);
  CHECK(view.head_t().data == nullptr);
  const MemoryPlan with = Packed::plan(p.local, WeightType::kBf16, WithBackward::kYes),
                   without = Packed::plan(p.local, WeightType::kBf16, WithBackward::kNo);
  REQUIRE(without.items().size() == 1);
  REQUIRE(with.items().size() == 2);
  CHECK(with.items()[0].bytes == without.items()[0].bytes);
  CHECK(with.items()[1].name == "test weights (transposed)");
}

TEST_CASE("a view of a larger degree has the weights of that shard, in the memory of the model") {
  const ParamTable table(config());
  const Packed whole(table, 1, 0), part(table, 2, 1);
  const ModelView inner(whole.model, part.shard), own(part.model, part.shard);
  CHECK(inner.shard().index() == 1);
  for (const int l : {0, 1}) {
    const LayerWeights &a = inner.layer(l), &b = own.layer(l);
    CHECK(same(a.query, b.query));
    CHECK(same(a.key_value, b.key_value));
    CHECK(same(a.output, b.output));
    CHECK(same(a.gate_up, b.gate_up));
    CHECK(same(a.down, b.down));
    CHECK(same(a.query_t, b.query_t));
    CHECK(same(a.key_value_t, b.key_value_t));
    CHECK(same(a.output_t, b.output_t));
    CHECK(same(a.gate_up_t, b.gate_up_t));
    CHECK(same(a.down_t, b.down_t));
    CHECK(same(a.input_norm, b.input_norm));
    CHECK(same(a.query_bias, b.query_bias));
    CHECK(same(a.key_value_bias, b.key_value_bias));
  }
  CHECK(same(inner.embedding(), own.embedding()));
  CHECK(same(inner.head(), own.head()));
  CHECK(same(inner.head_t(), own.head_t()));
  CHECK(same(inner.final_norm(), own.final_norm()));
  // The first shard begins where the whole does.
  const ModelView first(whole.model, ModelShard(table, 2, 0));
  CHECK(first.layer(0).query.data ==
        whole.model.forward(table.index_of(ParamRole::kQuery, 0)).data);
}

TEST_CASE("a shard that is not part of the weights held is refused") {
  const ParamTable table(config());
  const Packed second(table, 2, 1);
  CHECK_NOTHROW(ModelView(second.model, ModelShard(table, 4, 3)));
  CHECK_THROWS_MATCHES(ModelView(second.model, ModelShard(table, 4, 1)), Error,
                       Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(
                           "shard 1 of 4 is not part of the weights held (shard 1 of 2)")));
}
