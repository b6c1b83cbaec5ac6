// SPDX-License-Identifier: Apache-2.0
#include "model/ModelParallel.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "model/GoldenModel.hpp"
#include "model/RandomFloats.hpp"
#include "support/Bits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr int kRows = 5;

// What a row-parallel product of a layer needs.
struct RowParallel {
  const LeafOrder& leaves;
  const TreeReducer& sum;
  Range units;     // of this rank
  int unit_width;  // inputs per unit
  PackedMatrix weights;
};

RowParallel attention_output(const GoldenModel& m) {
  return {m.parallel.attention().leaves, m.parallel.attention().sum, m.parallel.shard().heads(),
          m.table.head_pad(), m.view->layer(0).output};
}
RowParallel mlp_down(const GoldenModel& m) {
  return {m.parallel.mlp().leaves, m.parallel.mlp().sum, m.parallel.shard().blocks(), kMlpBlock,
          m.view->layer(0).down};
}

// x W over the ranks of the model's group; x (kRows, inputs of the whole model).
std::vector<float> product(const GoldenModel& m, const RowParallel& p,
                           const std::vector<float>& x) {
  const int h = m.config.hidden, local = p.units.size() * p.unit_width;
  const std::size_t width = x.size() / kRows;
  std::vector<float> mine(std::size_t(kRows) * local);
  for (int r = 0; r < kRows; ++r)
    std::copy_n(x.begin() + r * width + p.units.begin * p.unit_width, local,
                mine.begin() + std::ptrdiff_t(r) * local);
  std::vector<float> partials(std::size_t(p.leaves.partials) * kRows * h), out(kRows * h);
  multiply_leaves(m.exec, make_matrix(partials.data(), p.leaves.partials * kRows, h),
                  ConstFloatMatrix(mine.data(), kRows, local), p.weights, p.leaves);
  std::vector<float> workspace(p.sum.workspace_floats(kRows, h));
  p.sum.sum(m.parallel.group(), out.data(), partials.data(), kRows, h, workspace.data());
  return out;
}

}  // namespace

TEST_CASE("a rank knows its own shard and those of the others") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const ParamTable table(read_model_config(golden_dir("llama_b")));
  const ModelParallel parallel(table, world, Arithmetic::kF32);
  CHECK(&parallel.group() == &world);
  CHECK(parallel.shard().index() == world.rank());
  int heads = 0, blocks = 0;
  for (int r = 0; r < world.size(); ++r) {
    CHECK(parallel.shard(r).degree() == world.size());
    CHECK(parallel.shard(r).heads().begin == heads);
    CHECK(parallel.shard(r).blocks().begin == blocks);
    heads = parallel.shard(r).heads().end;
    blocks = parallel.shard(r).blocks().end;
  }
  CHECK(heads == table.config().heads);
  CHECK(blocks == table.mlp_blocks());
}

TEST_CASE(
    "leaves are the query heads and MLP blocks of the shard, the last block as long as it is") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const ParamTable table(read_model_config(golden_dir("llama_b")));  // 200 columns of MLP
  const ModelParallel parallel(table, world, Arithmetic::kF32);
  CHECK(parallel.attention().leaves.leaves == parallel.shard().heads().size());
  CHECK(parallel.attention().leaves.leaf_k == table.config().head_dim);
  CHECK(parallel.attention().leaves.x_stride == table.head_pad());
  const LeafOrder& mlp = parallel.mlp().leaves;
  CHECK(mlp.leaves == parallel.shard().blocks().size());
  CHECK(mlp.leaf_k == kMlpBlock);
  const bool is_last = world.rank() + 1 == world.size();
  CHECK(mlp.last_leaf_k == (is_last ? 200 - 3 * kMlpBlock : kMlpBlock));
  CHECK(parallel.attention().leaves.partials == parallel.attention().sum.partials(world.rank()));
  CHECK(mlp.partials == parallel.mlp().sum.partials(world.rank()));
}

TEST_CASE("leaves have as many blocks as the table says, in f32 one") {
  const ModelConfig config = read_model_config(golden_dir("llama_b"));
  const ParamTable table(config, {3, 4});  // of 4 and 6 blocks
  const Group self = Group::self();
  const ModelParallel f32(table, self, Arithmetic::kF32), bf16(table, self, Arithmetic::kBf16);
  CHECK(f32.mlp().leaves.leaves == 4);
  CHECK(f32.head_input().leaves.leaves == 6);
  const LeafOrder &down = bf16.mlp().leaves, &gate_up = bf16.gate_up_input().leaves,
                  &head = bf16.head_input().leaves;
  CHECK(down.leaves == 2);
  CHECK(down.x_stride == 3 * kMlpBlock);
  CHECK(down.leaf_k == 3 * kMlpBlock);
  CHECK(down.last_leaf_k == 200 - 3 * kMlpBlock);
  CHECK(gate_up.leaves == 2);
  CHECK(gate_up.leaf_k == 6 * kMlpBlock);
  CHECK(gate_up.last_leaf_k == 2 * kMlpBlock);
  CHECK(head.leaves == 2);
  CHECK(head.leaf_k == 4 * kVocabBlock);
  CHECK(head.last_leaf_k == 2 * kVocabBlock);
}

TEST_CASE("row-parallel products have the bits of one rank") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  for (const std::string name : {"llama_b", "qwen2_a", "llama_a"}) {
    INFO(name);
    const GoldenModel one(name, self);
    if (world.size() > std::min(one.config.heads, one.table.mlp_blocks())) continue;
    const GoldenModel many(name, world);
    auto x = random_floats(std::int64_t{kRows} * one.config.heads * one.table.head_pad(), 1);
    CHECK(same_bits(product(many, attention_output(many), x),
                    product(one, attention_output(one), x)));
    x = random_floats(std::int64_t{kRows} * one.table.mlp_blocks() * kMlpBlock, 2);
    CHECK(same_bits(product(many, mlp_down(many), x), product(one, mlp_down(one), x)));
  }
}
