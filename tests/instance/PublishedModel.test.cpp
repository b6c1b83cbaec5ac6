// SPDX-License-Identifier: Apache-2.0
#include "instance/PublishedModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <set>

#include "comm/Collectives.hpp"
#include "instance/DirectoryWeights.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/SameWeights.hpp"
#include "session/RankBlocks.hpp"
#include "session/SharedArena.hpp"
#include "support/Messages.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// A golden model that learns in one layout and is used in another.
struct Apart {
  Apart(const RankBlocks& blocks, const ModelLayout& trained, const ModelLayout& used)
      : files(TAPER_GOLDEN_DIR "/models/llama_b"),
        published(files, blocks.all(), {WeightType::kBf16, trained, used}) {
    const Ranks& all = blocks.all();
    if (const Ranks* here = blocks.find(trained.ranks())) {
      TrainingModelOptions options;
      options.train_tp = trained.grid.tp;
      const bool is_shared = trained.ranks().overlaps(used.ranks());
      options.generation_tp = is_shared ? used.grid.tp : trained.grid.tp;
      model = std::make_unique<TrainingModel>(files, *here, options);
    }
    const ModelShard shard(files.table, used.grid.tp,
                           all.chain.shard_index(all.rank(), used.grid.tp));
    local = std::make_unique<LocalParams>(files.table, shard);
    MemoryPlan plan;
    if (model) model->add_memory(plan);
    published.add_memory(plan);
    PackedModel::add_memory(plan, "expected", *local, WeightType::kBf16, WithBackward::kNo);
    arena = make_arena(all, plan);
    if (model) model->create(*arena, files.rope_table(16));
    published.create(*arena, model.get());
    expected = std::make_unique<PackedModel>("expected", *local, shard, WeightType::kBf16,
                                             WithBackward::kNo, *arena);
    load_packed(all.exec, files, *expected);
  }

  ModelFiles files;
  PublishedModel published;
  std::unique_ptr<TrainingModel> model;
  std::unique_ptr<LocalParams> local;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<PackedModel> expected;
};

// All layouts of blocks of the ranks.
std::vector<ModelLayout> layouts(const Ranks& ranks) {
  std::vector<ModelLayout> list;
  for (const int size : ranks.chain.degrees())
    for (int first = 0; first < ranks.size(); first += size)
      for (const int tp : ranks.chain.degrees())
        if (tp <= size) list.push_back({first, {tp, size / tp}});
  return list;
}

}  // namespace

TEST_CASE("a model that learns on any ranks is used on any others") {
  const TestRanks world;
  const RankBlocks blocks(world.ranks, world.ranks.chain.degrees());
  for (const ModelLayout& trained : layouts(world.ranks))
    for (const ModelLayout& used : layouts(world.ranks)) {
      INFO("trained on " << to_string(trained) << ", used on " << to_string(used));
      Apart apart(blocks, trained, used);
      CHECK((apart.model != nullptr) == blocks.has(trained.ranks()));
      CHECK(apart.published.is_here() ==
            (blocks.has(used.ranks()) && !blocks.has(trained.ranks())));
      if (apart.model) apart.model->load_masters();
      for (int i = 0; i < 2; ++i) {
        apart.published.publish();
        if (apart.published.is_here())
          CHECK(same_weights(apart.published.packed(), *apart.expected));
      }
    }
}

TEST_CASE("publishing a thousand times takes no more handles and no more memory") {
  if (world_size() != 2) return;
  const TestRanks world;
  const RankBlocks blocks(world.ranks, {1});
  Apart apart(blocks, {1, {1, 1}}, {0, {1, 1}});
  if (apart.model) apart.model->load_masters();
  const auto communicator = [] {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    const MPI_Comm name = copy;
    MPI_Comm_free(&copy);
    return name;
  };
  apart.published.publish();
  const MPI_Comm before = communicator();
  for (int i = 0; i < 1000; ++i) apart.published.publish();
  CHECK(communicator() == before);  // the next free handle
  if (apart.published.is_here()) CHECK(same_weights(apart.published.packed(), *apart.expected));
}
