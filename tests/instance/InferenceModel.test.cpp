// SPDX-License-Identifier: Apache-2.0
#include "instance/InferenceModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "instance/SameWeights.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

namespace {

struct Fixture : TestRanks {
  ModelFiles files{TAPER_DATA_DIR "/model"};

  // Whether each piece that this rank holds is that of the directory.
  bool has_weights_of_the_directory(const PackedModel& packed) const {
    const LocalParams& local = packed.local();
    const HuggingFaceReader reader = files.open_weights();
    std::vector<float> values(static_cast<std::size_t>(local.size()));
    for (const auto& piece : local.pieces())
      reader.read_piece(piece.id,
                        {values.data() + piece.offset, static_cast<std::size_t>(piece.size)});
    MemoryPlan plan;
    PackedModel::add_memory(plan, "expected", local, packed.type(), WithBackward::kNo);
    Arena arena(plan);
    PackedModel expected("expected", local, packed.shard(), packed.type(), WithBackward::kNo,
                         arena);
    for (int t = 0; t < static_cast<int>(files.table.tensors().size()); ++t)
      expected.pack(ranks.exec, t, values.data() + local.offset(t));
    return same_weights(packed, expected);
  }
};

}  // namespace

TEST_CASE("a model is planned, then loaded in that much memory, in every degree") {
  Fixture f;
  for (const int tp : {1, world_size()}) {
    InferenceModel model("judge", f.files, f.ranks, tp);
    CHECK(model.parallel().group().size() == tp);
    MemoryPlan plan;
    model.add_memory(plan, WeightType::kF32);
    REQUIRE(!plan.items().empty());
    for (const auto& item : plan.items()) {
      CHECK(item.name.starts_with("judge"));
      CHECK(item.phase == MemoryPhase::kAlways);  // it stays
    }
    Arena arena(plan);
    model.load(f.ranks.exec, WeightType::kF32, arena);
    CHECK(f.has_weights_of_the_directory(model.packed()));
    CHECK(&model.view().table() == &model.packed().local().table());
  }
}

TEST_CASE("ranks of a group hold less each than one rank alone") {
  Fixture f;
  const auto bytes = [&](int tp) {
    MemoryPlan plan;
    InferenceModel("model", f.files, f.ranks, tp).add_memory(plan, WeightType::kBf16);
    return plan.total();
  };
  if (world_size() > 1) CHECK(bytes(world_size()) < bytes(1));
}
