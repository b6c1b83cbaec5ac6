// SPDX-License-Identifier: Apache-2.0
#include "instance/TrainedExits.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "checkpoint/WriteExits.hpp"
#include "comm/Collectives.hpp"
#include "instance/IdleLayers.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/SameWeights.hpp"
#include "session/SharedArena.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::WithinRel;
namespace fs = std::filesystem;

namespace {

std::vector<std::int32_t> ids_from(int first, int end, int step) {
  std::vector<std::int32_t> ids;
  for (int id = first; id < end; id += step) ids.push_back(id);
  return ids;
}

// A policy of three layers, of which the last one adds nothing, and exits of it.
struct Directories : TestRanks {
  Directories(int tp, const std::vector<int>& layers, const std::vector<std::int32_t>& ids)
      : TestRanks({tp}) {
    if (ranks.rank() == 0) {
      write_idle_layers(ModelFiles(TAPER_GOLDEN_DIR "/models/llama_b"), {0, 1, 0}, 2,
                        scratch / "policy");
      write_exits(ModelFiles(scratch / "policy"), layers, ids, scratch / "exits");
    }
    barrier(ranks.world());
  }

  Scratch scratch;
};

struct ExitSetting {
  int tp = 1;  // of the policy
  std::vector<int> layers = {1, 2};
  std::vector<std::int32_t> ids = ids_from(0, 331, 1);
  int steps = 1;
  WeightType type = WeightType::kF32;
};

// Exits that learn from passes of the policy over made-up responses.
struct Learning : Directories {
  explicit Learning(const ExitSetting& s)
      : Directories(s.tp, s.layers, s.ids),
        policy(scratch / "policy"),
        files(scratch / "exits", "--early-exits", policy),
        model("policy", policy, ranks, s.tp),
        pass_options(options(plan)),
        exits(files, ranks,
              {s.type, {}, {{.peak = 3e-3}, s.steps, 1.0f, 256}, pass_options.owner.phase}) {
    model.add_memory(plan, WeightType::kF32);
    TrainPass::add_memory(plan, policy.table, model.parallel(), pass_options);
    exits.add_memory(plan);
    arena = make_arena(ranks, plan);
    model.load(WeightType::kF32, *arena);
    pass.emplace(policy.table, model.parallel(), pass_options, *arena, policy.rope_table(64));
    exits.create(*arena);
  }

  static TrainPassOptions options(MemoryPlan& plan) {
    TrainPassOptions o;
    o.max_rows = 128;
    o.max_sequences = 8;
    o.logit_rows = 64;
    o.owner.phase = plan.phase("training");
    return o;
  }

  // Prompts of 3 tokens with responses of 24, of ids below 300.
  static PackedSamples samples(int seed) {
    PackedSamples packed;
    for (int i = 0; i < 4; ++i) {
      std::vector<std::int32_t> tokens;
      for (int k = 0; k < 27; ++k) tokens.push_back((101 * seed + 7 * i + 13 * k + k * k) % 300);
      const std::span<const std::int32_t> all(tokens);
      packed.add(all.first(3), all.subspan(3));
    }
    return packed;
  }

  // One collection of these samples, and what is learned from it.
  DraftReport learn(const PackedSamples& packed) {
    exits.trainer().begin(std::ssize(packed.rows));
    pass->forward(ranks.exec, model.view(), model.parallel(), packed.sequences);
    exits.trainer().collect(*pass, packed, model.parallel().group());
    return exits.trainer().learn();
  }

  // The loss of the policy itself on them, at that temperature.
  double policy_loss(const PackedSamples& packed, float temperature) {
    std::vector<float> log_probs(packed.rows.size());
    pass->forward(ranks.exec, model.view(), model.parallel(), packed.sequences);
    pass->log_probs(ranks.exec, model.view(), model.parallel(), packed.rows, packed.targets,
                    {policy.valid_ids(), temperature}, log_probs, {});
    return -std::accumulate(log_probs.begin(), log_probs.end(), 0.0) /
           static_cast<double>(log_probs.size());
  }

  // Of each exit: whether its weights are those of its files.
  std::vector<bool> as_in_files() const {
    std::vector<bool> same;
    const auto packed = exits.packed();
    for (const ModelFiles& head : files.heads()) {
      InferenceModel expected("expected", head, ranks, 1);
      const WeightType type = packed[same.size()]->type();
      MemoryPlan plan;
      expected.add_memory(plan, type);
      const auto memory = make_arena(ranks, plan);
      expected.load(type, *memory);
      same.push_back(same_weights(*packed[same.size()], expected.packed()));
    }
    return same;
  }

  ModelFiles policy;
  ExitFiles files;
  InferenceModel model;
  MemoryPlan plan;
  TrainPassOptions pass_options;
  TrainedExits exits;
  std::unique_ptr<Arena> arena;
  std::optional<TrainPass> pass;
};

std::set<int> degrees() {
  return {1, world_size()};
}

// All weights of a forward pass.
std::string bits_of(const PackedModel& packed) {
  std::string bits;
  for (int t = 0; t < static_cast<int>(packed.local().table().tensors().size()); ++t) {
    const PackedMatrix m = packed.forward(t);
    const std::int64_t bytes =
        std::int64_t{round_up(m.columns, kPanelColumns)} * m.k * bytes_of(m.type);
    if (bytes > 0) bits.append(static_cast<const char*>(m.data), static_cast<std::size_t>(bytes));
    const ConstFloatVector v = packed.vector(t);
    if (v.size() > 0)
      bits.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float));
  }
  return bits;
}

}  // namespace

TEST_CASE("trained exits begin as those of the files") {
  for (const int tp : degrees())
    for (const WeightType type : {WeightType::kF32, WeightType::kBf16}) {
      Learning l(ExitSetting{.tp = tp, .ids = ids_from(1, 331, 2), .type = type});
      REQUIRE(l.exits.models().size() == 2);
      REQUIRE(l.exits.packed().size() == 2);
      CHECK(l.exits.packed()[0]->type() == type);
      CHECK(l.as_in_files() == std::vector<bool>{true, true});
    }
}

TEST_CASE("exits learn what the policy is shown, all ranks the same") {
  for (const int tp : degrees()) {
    INFO("tensor-parallel degree " << tp);
    Learning l(ExitSetting{.tp = tp, .steps = 4});
    // Each replica has responses of its own.
    const PackedSamples packed = Learning::samples(l.ranks.rank() / tp);
    double last = l.learn(packed).loss;
    for (int call = 0; call < 3; ++call) {
      const DraftReport report = l.learn(packed);
      CHECK(report.steps == 4);
      CHECK(report.learning_rate == 3e-3);
      CHECK(report.loss < last);
      last = report.loss;
    }
    CHECK(l.as_in_files() == std::vector<bool>{false, false});
    for (const PackedModel* head : l.exits.packed()) {
      const std::string bits = bits_of(*head);
      CHECK(!bits.empty());
      CHECK((broadcast_string(l.ranks.world(), bits, 0) == bits));
    }
  }
}

// Layers that add nothing leave the stream that the policy's head reads, and the norm of an exit is
// a quarter of the policy's.
TEST_CASE("the loss is that of the streams that were collected, however they are shared out") {
  const PackedSamples packed = Learning::samples(0);
  for (const int tp : degrees()) {
    INFO("tensor-parallel degree " << tp);
    Learning l(ExitSetting{.tp = tp, .layers = {2}});
    const double expected = l.policy_loss(packed, 4.0f);
    CHECK_THAT(l.learn(packed).loss, WithinRel(expected, 1e-6));
    CHECK(l.learn(packed).loss < expected);
    Learning early(ExitSetting{.tp = tp, .layers = {1}});
    CHECK_THAT(early.learn(packed).loss, !WithinRel(expected, 1e-4));
  }
}

TEST_CASE("without a token that the heads know, nothing is learned") {
  Learning l(ExitSetting{.ids = ids_from(301, 331, 1), .steps = 3});
  const DraftReport report = l.learn(Learning::samples(0));
  CHECK(report.steps == 0);
  CHECK(report.empty == 3);
  CHECK(report.loss == 0.0);
  CHECK(l.as_in_files() == std::vector<bool>{true, true});
}

TEST_CASE("the memory plan has the exits in the phase in which they learn") {
  const Learning l(ExitSetting{});
  std::int64_t weights = 0, learning = 0;
  for (const MemoryPlan::Item& item : l.plan.items()) {
    if (!item.name.starts_with("early exits")) continue;
    if (item.name == "early exits weights (packed)") {
      CHECK(item.phase == MemoryPhase::kAlways);
      weights = item.bytes;
    }
    if (item.name == "early exits (training)") {
      CHECK(item.phase == l.pass_options.owner.phase);
      learning = item.bytes;
    }
  }
  CHECK(weights >= 2 * 331 * 96 * 4);
  CHECK(learning >= 2 * 256 * 96 * 4);  // the streams of two exits
}
