// SPDX-License-Identifier: Apache-2.0
#include "model/Gradients.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "comm/Collectives.hpp"
#include "model/GoldenModel.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// The gradient of the whole model from those of the shards, pieces in table order. If several
// shards hold a piece, `agree` says whether all have the same values.
std::vector<float> assemble(const GoldenModel& m, const Group& group, bool& agree) {
  const LocalParams whole(m.table, ModelShard(m.table, 1, 0));
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  std::vector<float> high(whole.size(), kNone), low(whole.size(), kNone);
  for (const auto& piece : m.local.pieces())
    for (std::int64_t i = 0; i < piece.size; ++i) {
      const float value = m.gradient_values()(piece.offset + i);
      high[whole.pieces()[piece.id].offset + i] = value;
      low[whole.pieces()[piece.id].offset + i] = -value;
    }
  all_reduce_max(group, high);
  all_reduce_max(group, low);
  agree = true;
  for (std::size_t i = 0; i < high.size(); ++i) agree = agree && high[i] == -low[i];
  return high;
}

}  // namespace

TEST_CASE("shards together have the gradient of one rank, also where they share KV heads") {
  const Group group = Group::world(MPI_COMM_WORLD), self = Group::self();
  bool shared_heads = false;
  for (const auto& name : kGoldenModels) {
    INFO(name);
    GoldenModel one(name, self);
    if (group.size() > std::min(one.config.heads, one.table.mlp_blocks())) continue;
    GoldenModel many(name, group);
    shared_heads = shared_heads || group.size() > one.config.kv_heads;
    const PackedSequences s = one.sequences();
    one.train(s);
    many.train(s);
    many.gradients->sum_shared(many.exec, group);
    bool agree = false;
    const std::vector<float> got = assemble(many, group, agree);
    CHECK(agree);
    for (const auto& piece : one.local.pieces()) {
      double difference = 0, norm = 0;
      for (std::int64_t i = piece.offset; i < piece.offset + piece.size; ++i) {
        const double expected = one.gradient_values()(i);
        difference += std::pow(got[i] - expected, 2);
        norm += expected * expected;
      }
      INFO(one.table.tensors()[one.table.tensor_of_piece(piece.id)].name);
      CHECK(std::sqrt(difference) <= 1e-4 * std::sqrt(norm) + 1e-9);
    }
  }
  CHECK(shared_heads == (group.size() > 1));  // a model with one KV head is among them
}

TEST_CASE("the gradient of a layer is a view of the flat gradient") {
  const Group self = Group::self();
  const GoldenModel m("qwen3_a", self);
  const LayerGradients layer = m.gradients->layer(1);
  const int down = m.table.index_of(ParamRole::kDown, 1);
  CHECK(layer.down.f32() == m.gradient_values().data() + m.local.offset(down));
  CHECK(layer.down.rows == m.table.mlp_blocks() * kMlpBlock);
  CHECK(layer.down.columns == m.config.hidden);
  CHECK(layer.key_norm.size() == m.config.head_dim);
  CHECK(layer.query_bias.data == nullptr);  // this family has no biases
}
