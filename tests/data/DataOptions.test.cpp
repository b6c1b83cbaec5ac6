// SPDX-License-Identifier: Apache-2.0
#include "data/DataOptions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("the defaults have no problems") {
  CHECK(DataOptions().problems().empty());
}

TEST_CASE("a task that is not there is named with its key and the tasks there are") {
  DataOptions options;
  options.task = "chess";
  REQUIRE(options.problems().size() == 1);
  CHECK_THAT(options.problems().front(), ContainsSubstring("Data/Task") &&
                                             ContainsSubstring("chess") &&
                                             ContainsSubstring("collatz"));
  REQUIRE(task_problems("chess", "Evaluation/Sets/a/Task").size() == 1);
  CHECK_THAT(task_problems("chess", "Evaluation/Sets/a/Task").front(),
             ContainsSubstring("Evaluation/Sets/a/Task"));
}

TEST_CASE("weights belong to files") {
  DataOptions options;
  options.weights = {1, 2};
  options.prompts = {"a.jsonl"};
  REQUIRE(options.problems().size() == 1);
  CHECK_THAT(options.problems().front(), ContainsSubstring("Data/Weights"));
  options.prompts = {"a.jsonl", "b.jsonl"};
  CHECK(options.problems().empty());
}
