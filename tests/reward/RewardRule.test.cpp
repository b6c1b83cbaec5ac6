// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardRule.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("answers are taken out of responses by rule") {
  CHECK(extract_answer(RewardRule::kTask, "1+1=2#2") == "2");
  CHECK(extract_answer(RewardRule::kExact, " a b \n") == "a b");
  CHECK(!extract_answer(RewardRule::kExact, " \n"));
  CHECK(extract_answer(RewardRule::kGsm8kStrict, "so #### 1,234") == "1234");
  CHECK(extract_answer(RewardRule::kBoxed, "is \\boxed{7}") == "7");
  CHECK(!extract_answer(RewardRule::kBoxed, "is 7"));
}

TEST_CASE("answers are the same as the rule has it") {
  CHECK(same_answer(RewardRule::kBoxed, "\\frac12", "0.5"));
  CHECK(!same_answer(RewardRule::kExact, "1/2", "0.5"));
  CHECK(same_answer(RewardRule::kGsm8kFlexible, "5", "5"));
}

TEST_CASE("each rule judges by its own verifier") {
  CHECK(score_response(RewardRule::kTask, "2", "1+1=2#2") == 1);
  CHECK(score_response(RewardRule::kExact, "2", "1+1=2#2") == 0);
  CHECK(score_response(RewardRule::kExact, "2", " 2\n") == 1);
  CHECK(score_response(RewardRule::kGsm8kStrict, "2", "it is 2") == 0);
  CHECK(score_response(RewardRule::kGsm8kFlexible, "2", "it is 2") == 1);
  CHECK(score_response(RewardRule::kBoxed, "2", "it is \\boxed{2}") == 1);
}
