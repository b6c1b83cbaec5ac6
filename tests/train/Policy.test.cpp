// SPDX-License-Identifier: Apache-2.0
#include "train/Policy.hpp"

#include <catch2/catch_test_macros.hpp>

#include "instance/DirectoryWeights.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/SameWeights.hpp"
#include "session/SharedArena.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

namespace {

bool has_item(const MemoryPlan& plan, const std::string& words) {
  return plan.table().find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("ranks hold what they need of the policy: masters to train it, weights to generate") {
  const TestRanks world;
  const int size = world.ranks.size(), me = world.ranks.rank();
  const RankBlocks blocks(world.ranks, world.ranks.chain.degrees());
  RunOptions o;
  o.model.directory = TAPER_GOLDEN_DIR "/models/llama_b";
  o.model.type = WeightType::kF32;
  o.rollout.max_prompt_tokens = o.rollout.max_new_tokens = 16;
  o.training.max_tokens = 64;
  ModelFiles files(o.model.directory);
  // It learns on the last rank, and generates on the first one, on all, or where it learns.
  for (const ModelLayout& use :
       {ModelLayout{0, {1, 1}}, ModelLayout{0, {1, size}}, ModelLayout{size - 1, {1, 1}}}) {
    INFO("generates on " << to_string(use));
    Placement placement;
    placement.policy = {size - 1, {1, 1}};
    placement.generation = use;
    MemoryPlan plan;
    Policy policy(o, files, blocks, placement, 1, plan.phase("training"));
    policy.add_memory(plan);
    const bool trains = me == size - 1, generates = use.ranks().has(me);
    CHECK((policy.model() != nullptr) == trains);
    CHECK((plan.total() > 0) == (trains || generates));
    CHECK(has_item(plan, "gradients") == trains);
    const ModelShard shard(files.table, 1, 0);
    const LocalParams local(files.table, shard);
    PackedModel::add_memory(plan, "expected", local, WeightType::kF32, WithBackward::kNo);
    const auto memory = make_arena(world.ranks, plan);
    Arena& arena = *memory;
    policy.create(arena, files.rope_table(32));
    policy.load_start();
    policy.publish_beyond();
    CHECK((policy.take_publish_seconds() > 0.0) == (use.ranks() != RankBlock{size - 1, 1}));
    if (!generates) continue;
    PackedModel expected("expected", local, shard, WeightType::kF32, WithBackward::kNo, arena);
    load_packed(world.ranks.exec, files, expected);
    CHECK(same_weights(policy.packed(), expected));
  }
}
