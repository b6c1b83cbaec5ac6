// SPDX-License-Identifier: Apache-2.0
#include "rollout/GeneratedSample.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace taper;

TEST_CASE("what the planner learns from") {
  std::vector<SampleSummary> samples(2);
  samples[1].prompt_tokens = 3;
  samples[1].response_tokens = 5;
  samples[1].finish = FinishReason::kAbort;
  const auto outcomes = outcomes_of(samples);
  REQUIRE(outcomes.size() == 2);
  CHECK_FALSE(outcomes[0].aborted);
  CHECK(outcomes[1].row == 1);
  CHECK(outcomes[1].prompt == 3);
  CHECK(outcomes[1].response == 5);
  CHECK(outcomes[1].aborted);
}

TEST_CASE("a sample has all that was generated, and nothing of a reward") {
  Completion c;
  c.id.prompt = 7;
  c.id.sample = 2;
  c.prompt = {1, 4, 5};
  c.response = {6, 2};
  c.log_probs = {-0.5f, -0.25f};
  c.kept_mass = {1.0f, 0.75f};
  c.finish = FinishReason::kLength;
  c.spans = {{0, 1, 3}, {1, 2, 1}};
  const std::vector<Sample> samples = as_samples({c});
  REQUIRE(samples.size() == 1);
  const Sample& s = samples.front();
  CHECK(s.id.prompt == 7);
  CHECK(s.id.sample == 2);
  CHECK(s.prompt == c.prompt);
  CHECK(s.response == c.response);
  CHECK(s.log_probs == c.log_probs);
  CHECK(s.kept_mass == c.kept_mass);
  CHECK(s.finish == FinishReason::kLength);
  CHECK(s.spans == c.spans);
  CHECK(s.rewards.empty());
  CHECK(s.score == 0.0f);
  CHECK(s.advantages.empty());
  CHECK_FALSE(s.unscored);
}
