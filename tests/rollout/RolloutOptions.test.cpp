// SPDX-License-Identifier: Apache-2.0
#include "rollout/RolloutOptions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a step needs a row for each sequence in flight") {
  RolloutOptions options;
  options.max_running = 300;
  options.step_rows = 299;
  REQUIRE(options.problems().size() == 1);
  CHECK_THAT(options.problems().front(), ContainsSubstring("Rollout/Step Rows is 299") &&
                                             ContainsSubstring("Rollout/Max Running 300"));
  options.step_rows = 300;
  CHECK(options.problems().empty());
  options.mode = PlannerMode::kAdvise;
  REQUIRE(options.problems().size() == 1);
  CHECK_THAT(options.problems().front(), ContainsSubstring("Rollout/Profile"));
}

TEST_CASE("rounds that cannot be are refused") {
  const auto problem = [](RoundMode mode, double prompts, double samples, int per_prompt = 8,
                          const std::string& profile = "") {
    RolloutOptions options;
    options.rounds = {mode, prompts, samples};
    options.samples = per_prompt;
    options.profile = profile;
    const auto list = options.problems();
    return list.empty() ? std::string() : list.front();
  };
  using enum RoundMode;
  CHECK(problem(kTail, 1.5, 1.25).empty());
  CHECK(problem(kTail, 0.0, 1.0, 8, "profile.h5").empty());
  CHECK(problem(kPredicted, 1.5, 1.0).empty());
  CHECK_THAT(problem(kTail, 0.0, 1.0), ContainsSubstring("Rollout/Profile is not set"));
  CHECK_THAT(problem(kTail, 0.0, 1.5, 8, "profile.h5"), ContainsSubstring("set Tail Samples to 1"));
  CHECK_THAT(problem(kTail, 1.5, 1.5, 1), ContainsSubstring("Samples Per Prompt is 1"));
  CHECK_THAT(problem(kPredicted, 0.0, 1.0, 8, "profile.h5"), ContainsSubstring("predicted"));
  CHECK_THAT(problem(kPredicted, 1.5, 1.5), ContainsSubstring("nothing is started there"));
}
