// SPDX-License-Identifier: Apache-2.0
#include "rollout/LoadedDraftModel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
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

}  // namespace

TEST_CASE("a draft model has room in every layout") {
  const TestRanks world;
  const ModelFiles policy(TAPER_GOLDEN_DIR "/models/llama_b");
  for (const auto& [name, placement] : named_draft_placements()) {
    INFO(name);
    const GeneratorOptions options = options_for("llama_b", placement);
    const RolloutLayouts layouts(options, policy, world.ranks);
    LoadedDraftModel draft(options, policy, layouts, world.ranks);
    MemoryPlan plan;
    const MemoryPhase phase = plan.phase("rollout");
    draft.add_memory(plan, WeightType::kF32, phase);
    CHECK(plan.total() > 0);
    Arena arena(plan);
    draft.load(WeightType::kF32, arena, phase);
    for (const int tp : layouts.degrees()) {
      draft.bind(tp);
      CHECK(draft.model().is_local() == (placement == DraftPlacement::kSequence || tp == 1));
    }
  }
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
