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
