// SPDX-License-Identifier: Apache-2.0
#include "instance/InferenceModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <vector>

#include "comm/Collectives.hpp"
#include "instance/DirectoryWeights.hpp"
#include "instance/SameWeights.hpp"
#include "kernels/copy.hpp"
#include "session/SharedArena.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

namespace {

struct Fixture : TestRanks {
  ModelFiles files{TAPER_DATA_DIR "/model"};

  // Whether each piece that this rank holds is that of the directory.
  bool has_weights_of_the_directory(const PackedModel& packed) const {
    MemoryPlan plan;
    PackedModel::add_memory(plan, "expected", packed.local(), packed.type(), WithBackward::kNo);
    Arena arena(plan);
    PackedModel expected("expected", packed.local(), packed.shard(), packed.type(),
                         WithBackward::kNo, arena);
    load_packed(ranks.exec, files, expected);
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
    std::vector<std::int64_t> bytes{plan.total(), plan.total() + plan.uncounted()};
    all_reduce_sum(f.ranks.world(), bytes);
    if (f.ranks.hosts.has_shared_memory())
      CHECK(bytes[0] * (world_size() / tp) == bytes[1]);  // one copy of each shard
    const auto arena = make_arena(f.ranks, plan);
    model.load(WeightType::kF32, *arena);
    CHECK(f.has_weights_of_the_directory(model.packed()));
    CHECK(&model.view().table() == &model.packed().local().table());
  }
}

TEST_CASE("ranks of a group hold less each than one rank alone") {
  Fixture f;
  const auto bytes = [&](int tp) {
    MemoryPlan plan;
    InferenceModel("model", f.files, f.ranks, tp).add_memory(plan, WeightType::kBf16);
    return plan.total() + plan.uncounted();
  };
  if (world_size() > 1) CHECK(bytes(world_size()) < bytes(1));
}

TEST_CASE("weights that stay in staging memory are there again in each of their phases") {
  Fixture f;
  MemoryPlan plan;
  const MemoryPhase scoring = plan.phase("scoring"), other = plan.phase("other");
  InferenceModel model("judge", f.files, f.ranks, world_size(), scoring);
  model.add_memory(plan, WeightType::kBf16);
  const std::int64_t bytes = plan.bytes(scoring);
  CHECK(bytes > 0);
  CHECK(plan.bytes(scoring, MemoryKind::kStaging) == 0);
  CHECK(plan.bytes(MemoryPhase::kAlways, MemoryKind::kModel) == 0);
  plan.add("other", other, bytes);
  const auto arena = make_arena(f.ranks, plan);
  model.load(WeightType::kBf16, *arena);
  const FloatVector overwritten(arena->take<float>("other", other, bytes / 4), bytes / 4);
  for (const float value : {1.0f, 2.0f}) {
    fill(f.ranks.exec, overwritten, value);
    f.ranks.exec.fence();
    CHECK(!f.has_weights_of_the_directory(model.packed()));
    model.bring();
    CHECK(f.has_weights_of_the_directory(model.packed()));
  }
}
