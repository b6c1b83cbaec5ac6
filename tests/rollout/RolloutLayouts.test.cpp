// SPDX-License-Identifier: Apache-2.0
#include "rollout/RolloutLayouts.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

GeneratorOptions options_for(PlannerMode mode) {
  GeneratorOptions o;
  o.mode = mode;
  o.max_prompt_tokens = 140;
  o.max_new_tokens = 60;
  o.max_running = 30;
  o.step_rows = 40;
  return o;
}

}  // namespace

TEST_CASE("degrees of layouts") {
  CHECK(degrees_of_layout("--layout", "4+2+2") == std::vector<int>{2, 4});
  CHECK(degrees_of_layout("--layout", "2x4") == std::vector<int>{2});
  CHECK(degrees_of_layout("--layout", "").empty());
  CHECK_THROWS_MATCHES(degrees_of_layout("--layout", "2y4"), Error,
                       MessageMatches(ContainsSubstring("--layout is '2y4' (expected: ")));
}

TEST_CASE("without changes there is the degree that is asked for, or those of the layout") {
  const TestRanks world;
  const ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_b");
  GeneratorOptions options = options_for(PlannerMode::kStatic);
  CHECK(RolloutLayouts(options, files, world.ranks).degrees() == std::vector<int>{1});
  const std::string all = std::to_string(world_size());
  options.layout = all + "x1";
  CHECK(RolloutLayouts(options, files, world.ranks).degrees() == std::vector<int>{world_size()});
  options.layout = "";
  options.mode = PlannerMode::kAdaptive;
  CHECK(RolloutLayouts(options, files, world.ranks).degrees() == world.ranks.chain.degrees());
}

TEST_CASE("a degree that the model is too small for is refused, whether or not it may change") {
  const TestRanks world({world_size()});
  ModelFiles files(TAPER_GOLDEN_DIR "/models/qwen3_b");
  for (const auto& [name, mode] : named_planner_modes()) {
    INFO(name);
    GeneratorOptions options = options_for(mode);
    options.tp = world_size();
    if (world_size() > 2)  // as many ranks as this model has shards for
      CHECK_THROWS_MATCHES(
          RolloutLayouts(options, files, world.ranks), Error,
          MessageMatches(ContainsSubstring("degree " + std::to_string(world_size())) &&
                         ContainsSubstring("blocks of 64 MLP columns to share out")));
    options.tp = 1;
    CHECK(RolloutLayouts(options, files, world.ranks).smallest_degree() == 1);
  }
}

TEST_CASE("a rank has memory for its share of the sequences in flight, in the worst layout") {
  const TestRanks world;
  const ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_b");
  const GeneratorOptions options = options_for(PlannerMode::kAdaptive);
  const RolloutLayouts layouts(options, files, world.ranks);
  const EngineOptions& one = layouts.smallest().options;
  std::int64_t most = 0;
  for (const int tp : world.ranks.chain.degrees()) {
    INFO("degree " << tp);
    const ModelParallel parallel(files.table, world.ranks.groups.tp_group(tp),
                                 world.ranks.exec.arithmetic);
    const int rows = std::max(options.step_rows, options.max_running * tp);
    most = std::max(
        most, InferencePass::floats(files.table, parallel, rows, world.ranks.exec.arithmetic));
    const EngineOptions& here = layouts.at(tp).options;
    CHECK(here.scheduler.max_running == 30 * tp);
    CHECK(here.scheduler.max_step_rows == rows);
    CHECK(here.max_positions == 200);
    // As many keys and values per rank, or fewer if a block does not divide evenly.
    const auto heads = [&](int degree) {
      return ModelShard(files.table, degree, 0).kv_heads().size();
    };
    CHECK(here.kv_blocks * heads(tp) <= one.kv_blocks * heads(1));
    CHECK(here.kv_blocks >= one.kv_blocks);
  }
  CHECK(layouts.memory().activations == most);
  CHECK(layouts.memory().kv_layer ==
        EngineMemory::of(files.table, *layouts.smallest().parallel, one).kv_layer);
}

TEST_CASE("a layout whose larger groups cannot see their weights in the smallest is refused") {
  if (world_size() != 4) return;
  const TestRanks world({2, 4});
  const ModelFiles files(TAPER_GOLDEN_DIR "/models/llama_b");  // two KV heads
  GeneratorOptions options = options_for(PlannerMode::kAdaptive);
  options.tp = 2;
  CHECK(RolloutLayouts(options, files, world.ranks).degrees() == std::vector<int>{2});
  options.layout = "4x1";
  CHECK_THROWS_MATCHES(
      RolloutLayouts(options, files, world.ranks), Error,
      MessageMatches(ContainsSubstring("Rollout/Layout 4x1 has a group of 4 ranks")));
}
