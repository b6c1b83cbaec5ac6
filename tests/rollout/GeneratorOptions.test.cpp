// SPDX-License-Identifier: Apache-2.0
#include "rollout/GeneratorOptions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("the defaults have no problems, and positions are those of prompt and response") {
  GeneratorOptions options;
  CHECK(options.problems().empty());
  options.max_prompt_tokens = 100;
  options.max_new_tokens = 28;
  CHECK(options.max_positions() == 128);
}

TEST_CASE("layouts change by a profile only, whose option is named") {
  GeneratorOptions options;
  options.mode = PlannerMode::kAdvise;
  REQUIRE(options.problems().size() == 1);
  CHECK_THAT(options.problems().front(),
             ContainsSubstring("Rollout/Mode needs Rollout/Profile (made by taper profile)"));
  options.names = {"--layout", "--kv-memory-mb", "--mode", "--profile"};
  CHECK_THAT(options.problems().front(), ContainsSubstring("--mode needs --profile"));
  options.profile = "profile.h5";
  CHECK(options.problems().empty());
}

TEST_CASE("responses end at the model's ids, and at texts by the bytes of all tokens") {
  const ModelFiles files(TAPER_DATA_DIR "/model");
  GeneratorOptions options;
  const StopOptions plain = options.stops(files);
  CHECK(plain.ids == files.config.eos_ids);
  CHECK(plain.strings.empty());
  CHECK(plain.token_bytes.empty());
  options.stop_strings = {"end"};
  const StopOptions stops = options.stops(files);
  CHECK(stops.ids == plain.ids);
  CHECK(stops.strings == options.stop_strings);
  CHECK(static_cast<int>(stops.token_bytes.size()) == files.valid_ids());
}

TEST_CASE("a draft model without speculation is a slip") {
  GeneratorOptions options;
  options.speculation.draft_model = "somewhere";
  REQUIRE(options.problems().size() == 1);
  CHECK_THAT(
      options.problems()[0],
      ContainsSubstring("Speculation/Draft Model is somewhere, but Speculation/Mode is off"));
  options.speculation.mode = SpeculationMode::kFixed;
  options.speculation.train_steps = 2;
  CHECK(options.problems().empty());
  options.speculation.early_exits = "elsewhere";
  REQUIRE(options.problems().size() == 1);
  CHECK_THAT(options.problems()[0], ContainsSubstring("are both named"));
  options.speculation.draft_model = options.speculation.early_exits = "";
  REQUIRE(options.problems().size() == 1);
  CHECK(options.problems()[0].find("Train Steps is 2") != std::string::npos);
}

TEST_CASE("each mode has one name") {
  for (const auto& [name, mode] : named_planner_modes())
    for (const auto& [other, same] : named_planner_modes())
      CHECK((name == other) == (mode == same));
}
