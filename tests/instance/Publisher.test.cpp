// SPDX-License-Identifier: Apache-2.0
#include "instance/Publisher.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/Collectives.hpp"
#include "instance/DirectoryWeights.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/SameWeights.hpp"
#include "instance/WeightShare.hpp"
#include "optim/Ownership.hpp"
#include "session/SharedArena.hpp"
#include "support/EnvironmentVariable.hpp"
#include "support/Messages.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// A golden model whose optimizer is sharded over all ranks in one layout, and weights in another,
// one copy for the ranks that hold the same shard.
struct Publishing : TestRanks {
  Publishing(const std::string& name, int train_tp, int packed_tp, const AdamWOptions& adamw = {},
             bool packs_where_masters_are = true)
      : TestRanks({train_tp, packed_tp}),
        files(std::filesystem::path(TAPER_GOLDEN_DIR) / "models" / name),
        tp_group(ranks.groups.tp_group(train_tp)),
        dp_group(ranks.groups.dp_group(train_tp)),
        training(files.table, shard(train_tp)),
        held(files.table, shard(packed_tp)),
        owners(owned_pieces(files.table, ranks.chain, layout(train_tp))),
        share(ranks, files.table, {layout(packed_tp)},
              packs_where_masters_are ? owners : Ownership()),
        arena(make_arena(ranks, plan(adamw))),
        packed("published", held, shard(packed_tp), WeightType::kF32, WithBackward::kNo, *arena),
        expected("expected", held, shard(packed_tp), WeightType::kF32, WithBackward::kNo, *arena),
        optimizer(training, tp_group, dp_group, adamw, *arena),
        staging(static_cast<std::size_t>(Publisher::staging_floats(held, share))),
        publisher(ranks, files.table, owners, share, &packed, &optimizer, staging.data()) {
    const HuggingFaceReader reader = files.open_weights();
    for (const auto& piece : optimizer.owned())
      reader.read_piece(piece.id, {master(piece), static_cast<std::size_t>(piece.size)});
    load_packed(ranks.exec, files, expected);
  }

  ModelShard shard(int tp) const {
    return {files.table, tp, ranks.chain.shard_index(ranks.rank(), tp)};
  }
  ModelLayout layout(int tp) const { return {0, {tp, ranks.size() / tp}}; }
  MemoryPlan plan(const AdamWOptions& adamw) const {
    MemoryPlan plan;
    PackedModel::add_memory(plan, "published", held, WeightType::kF32, WithBackward::kNo,
                            {.share = share.memory()});
    PackedModel::add_memory(plan, "expected", held, WeightType::kF32, WithBackward::kNo);
    ShardedAdamW::add_memory(plan, training, dp_group, adamw);
    return plan;
  }
  float* master(const LocalParams::Piece& piece) const {
    return optimizer.master().data() + (piece.offset - optimizer.begin());
  }

  ModelFiles files;
  const Group& tp_group;
  const Group& dp_group;
  LocalParams training, held;
  Ownership owners;
  WeightShare share;
  std::unique_ptr<Arena> arena;
  PackedModel packed, expected;
  ShardedAdamW optimizer;
  std::vector<float> staging;
  Publisher publisher;
};

}  // namespace

TEST_CASE("masters of any layout become the weights of any other one") {
  for (const int train_tp : {1, world_size()})
    for (const int packed_tp : {1, world_size()}) {
      INFO("trained at " << train_tp << ", packed at " << packed_tp);
      Publishing p("llama_b", train_tp, packed_tp);
      if (p.ranks.hosts.has_shared_memory())
        CHECK(p.share.is_shared() == (packed_tp < world_size()));
      CHECK_FALSE(same_weights(p.packed, p.expected));
      barrier(p.ranks.world());
      p.publisher.publish();
      CHECK(same_weights(p.packed, p.expected));
      barrier(p.ranks.world());
      p.publisher.publish();  // nothing is used up
      CHECK(same_weights(p.packed, p.expected));
    }
}

TEST_CASE("ranks with copies of their own pass on what they get") {
  const EnvironmentVariable own_copies("TAPER_SHARE_WEIGHTS", "no");
  for (const int train_tp : {1, world_size()})
    for (const int packed_tp : {1, world_size()}) {
      INFO("trained at " << train_tp << ", packed at " << packed_tp);
      Publishing p("llama_b", train_tp, packed_tp);
      CHECK_FALSE(p.share.is_shared());
      for (int time = 0; time < 2; ++time) {
        p.publisher.publish();
        CHECK(same_weights(p.packed, p.expected));
      }
    }
}

TEST_CASE("masters that the host keeps are published, too") {
  AdamWOptions adamw;
  adamw.offload = AdamWOptions::Offload::kAll;
  Publishing p("llama_b", 1, world_size(), adamw);
  p.publisher.publish();
  CHECK(same_weights(p.packed, p.expected));
}

TEST_CASE("the staging area holds the largest tensor that a rank packs") {
  const Publishing p("llama_b", 1, 1);
  const std::vector<std::int64_t> mine{Publisher::staging_floats(p.held, p.share)};
  std::int64_t largest = 0;
  for (int t = 0; t < static_cast<int>(p.files.table.tensors().size()); ++t) {
    const std::int64_t size = p.held.rows(t) * p.files.table.tensors()[t].columns;
    if (p.share.packs(t)) CHECK(mine[0] >= size);
    largest = std::max(largest, size);
  }
  auto most = mine;
  all_reduce_max(p.ranks.world(), most);
  CHECK(most[0] == largest);
}

TEST_CASE("no weights change before all ranks publish") {
  Publishing p("llama_b", 1, 1);
  p.publisher.publish();
  for (const auto& piece : p.optimizer.owned()) p.master(piece)[0] += 1.0f;
  barrier(p.ranks.world());
  if (p.ranks.rank() == world_size() - 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(same_weights(p.packed, p.expected));
  }
  p.publisher.publish();
  CHECK_FALSE(same_weights(p.packed, p.expected));
}

TEST_CASE("replicas that have drifted apart are an error that names the tensor") {
  if (world_size() != 2) return;  // the model has two blocks of MLP
  Publishing p("llama_a", 2, 2);
  // The last tensor, which both ranks own: no collective follows that rank 1 would miss.
  const LocalParams::Piece last = p.optimizer.owned().back();
  REQUIRE(p.files.table.tensors()[p.files.table.tensor_of_piece(last.id)].kind ==
          ShardKind::kReplicated);
  if (p.ranks.rank() == 1) p.master(last)[0] += 1.0f;
  const std::string error = message_of([&] { p.publisher.publish(); });
  CHECK(error.empty() == (p.ranks.rank() == 0));
  if (p.ranks.rank() == 1)
    CHECK_THAT(error, ContainsSubstring("rank 1") && ContainsSubstring("final_norm") &&
                          ContainsSubstring("differs from its owner's"));
  barrier(p.ranks.world());
}

TEST_CASE("a replica that has drifted is found where one rank packs the weights of both") {
  if (world_size() != 2) return;
  const ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_a");
  const auto& tensors = files.table.tensors();
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    if (tensors[t].kind != ShardKind::kReplicated) continue;
    INFO(tensors[t].name);
    Publishing p("llama_a", 2, 1);
    for (const auto& piece : p.optimizer.owned())
      if (p.ranks.rank() == 1 && p.files.table.tensor_of_piece(piece.id) == t)
        p.master(piece)[0] += 1.0f;
    const std::string error = message_of([&] { p.publisher.publish(); });
    if (p.ranks.rank() == 1) CHECK_THAT(error, ContainsSubstring(tensors[t].name));
    barrier(p.ranks.world());
  }
}

TEST_CASE("a replica that has drifted is found where another rank packs its weights") {
  if (world_size() != 4) return;
  // Two copies of two ranks, each of whom owns half of a shard.
  Publishing p("llama_b", 2, 2, {}, false);
  if (!p.share.is_shared()) return;
  const auto drifts = [&](const LocalParams::Piece& piece) {
    return p.owners[piece.id].front() != p.ranks.rank() &&
           !p.share.packs(p.files.table.tensor_of_piece(piece.id));
  };
  const auto owned = p.optimizer.owned();
  const auto found = std::ranges::find_if(owned, drifts);
  std::vector<int> last{found == owned.end() ? -1 : p.ranks.rank()};
  all_reduce_max(p.ranks.world(), last);
  REQUIRE(last[0] >= 0);
  if (p.ranks.rank() == last[0]) p.master(*found)[0] += 1.0f;
  const std::string error = message_of([&] { p.publisher.publish(); });
  // Of the others, that one may find it too which got the piece from there.
  if (p.ranks.rank() == last[0]) CHECK_THAT(error, ContainsSubstring("differs from its owner's"));
}
