// SPDX-License-Identifier: Apache-2.0
#include "instance/Publisher.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "comm/Collectives.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/SameWeights.hpp"
#include "support/Messages.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// A golden model whose optimizer is sharded over all ranks in one layout, and weights in another.
struct Publishing : TestRanks {
  Publishing(const std::string& name, int train_tp, int packed_tp, const AdamWOptions& adamw = {})
      : TestRanks({train_tp, packed_tp}),
        files(std::filesystem::path(TAPER_GOLDEN_DIR) / "models" / name),
        tp_group(ranks.groups.tp_group(train_tp)),
        dp_group(ranks.groups.dp_group(train_tp)),
        training(files.table, shard(train_tp)),
        held(files.table, shard(packed_tp)),
        arena(plan(adamw)),
        packed("published", held, shard(packed_tp), WeightType::kF32, WithBackward::kNo, arena),
        expected("expected", held, shard(packed_tp), WeightType::kF32, WithBackward::kNo, arena),
        optimizer(training, tp_group, dp_group, adamw, arena),
        staging(static_cast<std::size_t>(Publisher::staging_floats(held))),
        publisher(ranks, files.table, pieces(train_tp, packed_tp), &packed, &optimizer,
                  staging.data()) {
    const HuggingFaceReader reader = files.open_weights();
    for (const auto& piece : optimizer.owned())
      reader.read_piece(piece.id, {master(piece), static_cast<std::size_t>(piece.size)});
    load_packed(ranks.exec, files, expected);
  }

  ModelShard shard(int tp) const {
    return {files.table, tp, ranks.chain.shard_index(ranks.rank(), tp)};
  }
  PublishedPieces pieces(int train_tp, int packed_tp) const {
    const auto layout = [&](int tp) { return ModelLayout{0, {tp, ranks.size() / tp}}; };
    return {owned_pieces(files.table, ranks.chain, layout(train_tp)),
            held_pieces(files.table, ranks.chain, layout(packed_tp))};
  }
  MemoryPlan plan(const AdamWOptions& adamw) const {
    MemoryPlan plan;
    for (const char* name : {"published", "expected"})
      PackedModel::add_memory(plan, name, held, WeightType::kF32, WithBackward::kNo);
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
  Arena arena;
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
      CHECK_FALSE(same_weights(p.packed, p.expected));
      p.publisher.publish();
      CHECK(same_weights(p.packed, p.expected));
      p.publisher.publish();  // nothing is used up
      CHECK(same_weights(p.packed, p.expected));
    }
}

TEST_CASE("masters that the host keeps are published, too") {
  AdamWOptions adamw;
  adamw.offload = AdamWOptions::Offload::kAll;
  Publishing p("llama_b", 1, world_size(), adamw);
  p.publisher.publish();
  CHECK(same_weights(p.packed, p.expected));
}

TEST_CASE("the staging area holds the largest tensor") {
  const ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_b");
  const LocalParams local(files.table, ModelShard(files.table, 2, 1));
  std::int64_t largest = 0;
  for (int t = 0; t < static_cast<int>(files.table.tensors().size()); ++t)
    largest = std::max(largest, local.rows(t) * files.table.tensors()[t].columns);
  CHECK(Publisher::staging_floats(local) == largest);
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
