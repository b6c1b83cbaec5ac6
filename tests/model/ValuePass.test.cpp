// SPDX-License-Identifier: Apache-2.0
#include "model/ValuePass.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "comm/Group.hpp"
#include "model/GoldenModel.hpp"
#include "support/Bits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr ValuePassOptions kOptions{128, 4};

// Values of some packed rows of a model by a pass without gradients.
std::vector<float> values_of(LoadedModel& m, const PackedSequences& sequences,
                             const std::vector<int>& rows) {
  MemoryPlan plan;
  ValuePass::add_memory(plan, "test", m.table, m.parallel, kOptions);
  Arena arena(plan);
  ValuePass pass("test", m.table, m.parallel, kOptions, arena,
                 ConstFloatMatrix(m.rope.data(), 256, m.config.head_dim));
  std::vector<float> value(rows.size());
  pass.values(m.exec, *m.view, m.parallel, sequences, rows, value);
  return value;
}

}  // namespace

TEST_CASE("a pass without gradients gives the values of training, on any number of ranks") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  for (const char* name : {"llama_b", "qwen3_b"}) {
    INFO(name);
    const PackedSequences sequences = GoldenModel(name, self).sequences();
    std::vector<int> rows(sequences.ids.size());
    std::iota(rows.begin(), rows.end(), 0);
    LoadedModel one(golden_dir(name), self, WeightType::kBf16, {}, 256, 9);
    LoadedModel many(golden_dir(name), world, WeightType::kBf16, {}, 256, 9);
    std::vector<float> trained(rows.size());
    one.pass->forward(one.exec, *one.view, one.parallel, sequences);
    one.pass->values(one.exec, *one.view, rows, trained);
    CHECK(same_bits(values_of(one, sequences, rows), trained));
    CHECK(same_bits(values_of(many, sequences, rows), trained));
  }
}
