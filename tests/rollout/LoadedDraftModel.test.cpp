// SPDX-License-Identifier: Apache-2.0
#include "rollout/LoadedDraftModel.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>

#include "base/Error.hpp"
#include "checkpoint/CutLayers.hpp"
#include "comm/Collectives.hpp"
#include "session/SharedArena.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

GeneratorOptions options_for(const std::string& draft, DraftPlacement placement) {
  GeneratorOptions o;
  o.mode = PlannerMode::kAdaptive;
  o.profile = "none";
  o.max_prompt_tokens = 140;
  o.max_new_tokens = 60;
  o.max_running = 8;
  o.step_rows = 40;
  o.speculation.mode = SpeculationMode::kFixed;
  o.speculation.draft_model = TAPER_GOLDEN_DIR "/models/" + draft;
  o.speculation.draft_placement = placement;
  return o;
}

// A draft model of its own, bound to replicas of this degree.
struct Bound {
  Bound(const GeneratorOptions& options, const ModelFiles& policy, const TestRanks& world, int tp)
      : layouts(options, policy, world.ranks), draft(options, policy, layouts, world.ranks) {
    const MemoryPhase phase = plan.phase("generation");
    draft.add_memory(plan, WeightType::kF32, phase);
    arena = make_arena(world.ranks, plan);
    draft.load(WeightType::kF32, *arena, phase, nullptr);
    draft.bind(tp);
  }

  RolloutLayouts layouts;
  LoadedDraftModel draft;
  MemoryPlan plan;
  std::unique_ptr<Arena> arena;
};

}  // namespace

TEST_CASE("a draft model has room for what fits in the cache of the policy, in every layout") {
  const TestRanks world;
  const ModelFiles policy(TAPER_GOLDEN_DIR "/models/llama_b");
  for (const auto& [name, placement] : named_draft_placements()) {
    INFO(name);
    const GeneratorOptions options = options_for("llama_b", placement);
    Bound bound(options, policy, world, 1);
    for (const int tp : bound.layouts.degrees()) {
      bound.draft.bind(tp);
      DraftModel& model = bound.draft.model();
      CHECK(model.is_local() == (placement == DraftPlacement::kSequence || tp == 1));
      // All that the policy's cache holds, or, unless ranks have shards of each, a rank's share.
      const EngineOptions& policy_options = bound.layouts.at(tp).options;
      const int size = policy_options.scheduler.block_size;
      const int most =
          std::min(policy_options.scheduler.max_running,
                   policy_options.kv_blocks / ((options.max_positions() + size - 1) / size));
      REQUIRE(most >= 8);
      std::vector<Sequence> sequences(placement == DraftPlacement::kTensor ? most : most / tp);
      std::vector<DraftAsk> asks;
      std::vector<DraftContext> contexts;
      const std::vector<std::int32_t> none;
      for (int i = 0; i < std::ssize(sequences); ++i) {
        Sequence& s = sequences[i];
        s.id = {i, 0};
        s.prompt_length = options.max_prompt_tokens;
        for (int at = 0; at + 1 < options.max_positions(); ++at)
          s.tokens.push_back((7 * at + i) % 90);
        asks.push_back({&s, 1});
        contexts.push_back({&s, none});
      }
      model.keep(asks);
      for (const DrawnToken& drawn : model.draw(contexts, {})) CHECK(drawn.id >= 0);
    }
  }
}

TEST_CASE(
    "all placements draw the first token of a draft alike, whatever rounds there were before") {
  const TestRanks world;
  const Scratch scratch;
  const std::string golden = TAPER_GOLDEN_DIR "/models/llama_b";
  const ModelFiles policy(golden);
  // Deep enough for windows of several layers.
  if (world.ranks.rank() == 0) cut_layers(policy, {0, 1, 0, 1, 0, 1}, scratch / "deep");
  barrier(world.ranks.world());
  GeneratorOptions options = options_for("", DraftPlacement::kSequence);
  options.speculation.draft_model = (scratch / "deep").string();
  const int tp = world_size();
  Bound plain(options, policy, world, tp);
  options.speculation.draft_placement = DraftPlacement::kLayer;
  Bound layers(options, policy, world, tp);
  options.speculation.draft_placement = DraftPlacement::kTensor;
  Bound shards(options, policy, world, tp);
  SamplingOptions sampling;
  sampling.seed = 3;
  std::vector<Sequence> sequences(3);
  for (int i = 0; i < 3; ++i) {
    sequences[i].id = {i, 0};
    for (int k = 0; k < 20 + 30 * i; ++k) sequences[i].tokens.push_back((7 * k + i) % 90);
    sequences[i].prompt_length = sequences[i].length();
  }
  int approximate = 0;
  for (int step = 0; step < 30; ++step) {
    std::vector<std::vector<std::int32_t>> drafts(3);
    for (int length = 0; length < 3; ++length) {
      std::vector<DraftContext> contexts;
      for (int i = 0; i < 3; ++i)
        if ((step + i) % 4 != 0 && (step * 5 + i) % 3 >= length)
          contexts.push_back({&sequences[i], drafts[i]});
      if (contexts.empty()) break;
      const auto exact = plain.draft.model().draw(contexts, sampling),
                 sharded = shards.draft.model().draw(contexts, sampling),
                 windowed = layers.draft.model().draw(contexts, sampling);
      std::vector<std::int64_t> least;
      for (std::size_t i = 0; i < contexts.size(); ++i) {
        CHECK(exact[i].id == sharded[i].id);
        CHECK(exact[i].log_prob == sharded[i].log_prob);
        if (length == 0) CHECK(exact[i].log_prob == windowed[i].log_prob);
        approximate += exact[i].log_prob != windowed[i].log_prob;
        least.push_back(-windowed[i].id);
        drafts[contexts[i].sequence->id.prompt].push_back(exact[i].id);
      }
      std::vector<std::int64_t> most(least);
      for (auto& id : most) id = -id;
      all_reduce_max(world.ranks.world(), least);
      all_reduce_max(world.ranks.world(), most);
      for (std::size_t i = 0; i < most.size(); ++i) CHECK(most[i] == -least[i]);
    }
    // Some of each draft is right.
    for (int i = 0; i < 3; ++i) {
      const auto right =
          std::min<std::size_t>(drafts[i].size(), static_cast<std::size_t>(step % 3));
      auto& tokens = sequences[i].tokens;
      tokens.insert(tokens.end(), drafts[i].begin(), drafts[i].begin() + right);
      tokens.push_back((11 * step + i) % 90);
    }
  }
  CHECK((approximate > 0) == (tp > 1));
}

TEST_CASE("a draft model that does not fit is refused, with the key that names it") {
  const TestRanks world;
  const ModelFiles policy(TAPER_GOLDEN_DIR "/models/llama_b");
  const auto refuses = [&](GeneratorOptions options, const std::string& what) {
    const std::string model = options.speculation.draft_model;
    options.speculation.draft_model = "";
    const RolloutLayouts layouts(options, policy, world.ranks);
    options.speculation.draft_model = model;
    CHECK_THROWS_MATCHES(
        LoadedDraftModel(options, policy, layouts, world.ranks), Error,
        MessageMatches(ContainsSubstring(what) && ContainsSubstring("Speculation/Draft Model")));
  };
  refuses(options_for("llama_a", DraftPlacement::kSequence), "has 320 embeddings");
  refuses(options_for("nothing", DraftPlacement::kSequence), "nothing");
  GeneratorOptions longer = options_for("qwen2_b", DraftPlacement::kSequence);
  longer.max_new_tokens = 200;
  refuses(longer, "exceed the context");
  if (world_size() > 2)
    refuses(options_for("qwen2_b", DraftPlacement::kTensor), "can be shared out over 2 ranks");
}
