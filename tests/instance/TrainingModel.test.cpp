// SPDX-License-Identifier: Apache-2.0
#include "instance/TrainingModel.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "comm/Collectives.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/SameWeights.hpp"
#include "model/RandomWeights.hpp"
#include "rl/UpdateLoop.hpp"
#include "session/SharedArena.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

namespace {

TrainingModelOptions options(int train_tp, int generation_tp, WeightType type = WeightType::kF32) {
  TrainingModelOptions o;
  o.type = type;
  o.train_tp = train_tp;
  o.generation_tp = generation_tp;
  o.pass.max_rows = 64;
  o.pass.max_sequences = 4;
  return o;
}

struct Fixture : TestRanks {
  explicit Fixture(const TrainingModelOptions& o)
      : TestRanks({o.train_tp, o.generation_tp}),
        model(files, ranks, o),
        inference("expected", files, ranks, std::min(o.train_tp, o.generation_tp)),
        arena(make_arena(ranks, plan(o.type))) {
    model.create(*arena, files.rope_table(64));
    inference.load(o.type, *arena);
  }
  MemoryPlan plan(WeightType type) const {
    MemoryPlan plan;
    model.add_memory(plan);
    inference.add_memory(plan, type);
    return plan;
  }

  ModelFiles files{TAPER_GOLDEN_DIR "/models/llama_b"};
  TrainingModel model;
  InferenceModel inference;  // of the degree in which the weights are held
  std::unique_ptr<Arena> arena;
};

}  // namespace

TEST_CASE("a loaded model has the weights of its files, in whatever layouts and type") {
  for (const WeightType type : {WeightType::kF32, WeightType::kBf16})
    for (const int train_tp : {1, world_size()})
      for (const int generation_tp : {1, world_size()}) {
        INFO("trained at " << train_tp << ", used at " << generation_tp);
        Fixture f(options(train_tp, generation_tp, type));
        f.model.load_masters();
        CHECK(same_weights(f.model.packed(), f.inference.packed()));
        CHECK(f.model.weight_type() == type);
        CHECK(f.model.packed().shard().degree() == std::min(train_tp, generation_tp));
        CHECK(f.model.train_view().shard().degree() == train_tp);
        CHECK(f.model.train_parallel().group().size() == train_tp);
        CHECK(f.model.dp_group().size() == world_size() / train_tp);
      }
}

TEST_CASE("masters are those of the files, each once among the replicas") {
  for (const int train_tp : {1, world_size()}) {
    Fixture f(options(train_tp, 1));
    f.model.load_masters();
    const ShardedAdamW& optimizer = f.model.optimizer();
    const HuggingFaceReader reader = f.files.open_weights();
    std::vector<float> values;
    for (const auto& piece : optimizer.owned()) {
      values.resize(static_cast<std::size_t>(piece.size));
      reader.read_piece(piece.id, values);
      CHECK(std::equal(values.begin(), values.end(),
                       optimizer.master().data() + (piece.offset - optimizer.begin())));
    }
    std::vector<std::int64_t> owned{optimizer.size()};
    all_reduce_sum(f.model.dp_group(), owned);
    CHECK(owned[0] == f.model.local().size());
  }
}

TEST_CASE("drawn masters depend on the seed, not on the layout") {
  for (const int train_tp : {1, world_size()}) {
    Fixture f(options(train_tp, 1));
    f.model.draw_masters(5);
    const ShardedAdamW& optimizer = f.model.optimizer();
    std::vector<float> values;
    for (const auto& piece : optimizer.owned()) {
      values.resize(static_cast<std::size_t>(piece.size));
      draw_piece(f.files.table, piece.id, 5, values);
      CHECK(std::equal(values.begin(), values.end(),
                       optimizer.master().data() + (piece.offset - optimizer.begin())));
    }
    CHECK(!same_weights(f.model.packed(), f.inference.packed()));
  }
}

TEST_CASE("what the masters have become is published to all ranks") {
  Fixture f(options(world_size(), 1));
  f.model.load_masters();
  const FloatVector master = f.model.optimizer().master();
  for (std::size_t i = 0; i < master.size(); ++i) master(i) *= 2.0f;
  CHECK(same_weights(f.model.packed(), f.inference.packed()));  // not yet
  f.model.publish();
  CHECK_FALSE(same_weights(f.model.packed(), f.inference.packed()));
  for (std::size_t i = 0; i < master.size(); ++i) master(i) *= 0.5f;
  f.model.publish();
  CHECK(same_weights(f.model.packed(), f.inference.packed()));
}

TEST_CASE("trainers get the model itself, and publish it") {
  Fixture f(options(world_size(), 1));
  f.model.load_masters();
  const UpdateTarget target = f.model.target({7, 0.5f});
  CHECK(&target.context.view == &f.model.train_view());
  CHECK(&target.context.pass == &f.model.pass());
  CHECK(target.context.options.max_rows == 64);
  CHECK(target.context.head.valid_ids == 7);
  CHECK(&target.dp_group == &f.model.dp_group());
  const FloatVector master = target.optimizer.master();
  for (std::size_t i = 0; i < master.size(); ++i) master(i) *= 2.0f;
  target.publish();
  CHECK_FALSE(same_weights(f.model.packed(), f.inference.packed()));
}

TEST_CASE("the memory plan tells models apart, and when they are at work") {
  const TestRanks r;
  const ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_b");
  MemoryPlan plan;
  TrainingModelOptions policy = options(1, 1), critic = policy;
  policy.pass.owner.phase = plan.phase("training");
  critic.name = "critic";
  critic.pass.owner = {"critic", plan.phase("critic")};
  TrainingModel(files, r.ranks, policy).add_memory(plan);
  const std::int64_t alone = plan.total();
  TrainingModel(files, r.ranks, critic).add_memory(plan);
  const auto bytes = [&](const std::string& name, MemoryPhase phase) {
    for (const auto& item : plan.items())
      if (item.name == name && item.phase == phase) return item.bytes;
    return std::int64_t{0};
  };
  const std::int64_t gradients = bytes("gradients", policy.pass.owner.phase);
  CHECK(gradients == 4 * LocalParams(files.table, ModelShard(files.table, 1, 0)).size());
  CHECK(bytes("critic gradients", critic.pass.owner.phase) == gradients);
  CHECK(bytes("policy weights (packed)", MemoryPhase::kAlways) > 0);
  CHECK(bytes("critic weights (packed)", MemoryPhase::kAlways) ==
        bytes("policy weights (packed)", MemoryPhase::kAlways));
  CHECK(plan.total() < 2 * alone);  // they are not at work at the same time
}
