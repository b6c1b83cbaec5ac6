// SPDX-License-Identifier: Apache-2.0
#include "reward/EvalStatistics.hpp"

#include <bit>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace taper;
using Catch::Approx;

TEST_CASE("pass@k is the share of subsets with a right sample") {
  for (int n = 1; n <= 8; ++n)
    for (int right = 0; right <= n; ++right)
      for (int k = 1; k <= n; ++k) {
        int subsets = 0, passing = 0;
        for (unsigned subset = 0; subset < (1u << n); ++subset) {
          if (std::popcount(subset) != k) continue;
          ++subsets;
          if ((subset & ((1u << right) - 1)) != 0)
            ++passing;  // the first `right` samples are right
        }
        CHECK(pass_at(n, right, k) == Approx(static_cast<double>(passing) / subsets).margin(1e-12));
      }
  CHECK(pass_at(1000, 1, 500) == Approx(0.5));
}

TEST_CASE("the majority's answer counts") {
  CHECK(majority_score({{0, 1, 1}, {"3", "4", "4"}}) == 1.0);
  CHECK(majority_score({{0, 0, 1}, {"3", "3", "4"}}) == 0.0);
  CHECK(majority_score({{0, 1}, {"3", "4"}}) == 0.0);  // the earlier among equals
  CHECK(majority_score({{1, 0}, {"4", "3"}}) == 1.0);
  CHECK(majority_score({{0, 0, 0, 1}, {std::nullopt, std::nullopt, std::nullopt, "4"}}) == 1.0);
  CHECK(majority_score({{0}, {std::nullopt}}) == 0.0);
}

TEST_CASE("figures of a group") {
  const EvalScores s = summarize({scores_of({{1, 0, 0, 0}, {"1", "2", "2", "3"}}),
                                  scores_of({{1, 1, 0, 1}, {"5", "5", "6", "5"}})});
  CHECK(s.prompts == 2);
  CHECK(s.avg == Approx(0.5));
  CHECK(s.pass.size() == 3);
  CHECK(s.pass.at(1) == Approx(s.avg));
  CHECK(s.pass.at(2) == Approx((0.5 + 1.0) / 2));
  CHECK(s.pass.at(4) == Approx(1.0));
  CHECK(s.maj == Approx(0.5));
}

TEST_CASE("prompts with fewer samples count where they have enough") {
  const EvalScores s = summarize(
      {scores_of({{1, 0, 0, 0}, {"1", "2", "3", "4"}}), {}, scores_of({{1, 1}, {"5", "5"}})});
  CHECK(s.prompts == 2);
  CHECK(s.avg == Approx((0.25 + 1.0) / 2));
  CHECK(s.pass.at(2) == Approx((0.5 + 1.0) / 2));
  CHECK(s.pass.at(4) == Approx(1.0));  // of the first one
}

TEST_CASE("scores are named by their samples, without those that are not there") {
  EvalScores s;
  s.avg = 0.25;
  s.pass = {{1, 0.5}, {2, 0.75}};
  s.maj = 0.125;
  CHECK(named_scores(s, 4) ==
        MetricValues{{"avg@4", 0.25}, {"pass@1", 0.5}, {"pass@2", 0.75}, {"maj@4", 0.125}});
}

TEST_CASE("answers vote in the form in which they first came") {
  JudgedPrompt judged;
  for (const char* text : {"is \\boxed{1/2}", "is \\boxed{3}", "is \\boxed{0.5}", "is 3"})
    add_sample(RewardRule::kBoxed, text == std::string("is 3") ? 0 : 1, text, judged);
  REQUIRE(judged.answers.size() == 4);
  CHECK(judged.answers[0] == judged.answers[2]);
  CHECK(judged.answers[0] != judged.answers[1]);
  CHECK(!judged.answers[3]);
  CHECK(judged.scores == std::vector<double>{1, 1, 1, 0});
}

TEST_CASE("figures that are equal have the same bits, and none is above 1") {
  for (int prompts = 1; prompts <= 60; ++prompts) {
    std::vector<PromptScores> all, some;
    for (int i = 0; i < prompts; ++i) {
      all.push_back(scores_of({{1, 1, 1}, {"1", "1", "1"}}));
      some.push_back(
          scores_of({{i % 2 == 0 ? 1.0 : 0.0, 1, i % 5 == 0 ? 1.0 : 0.0}, {"1", "2", "3"}}));
    }
    const EvalScores whole = summarize(all), part = summarize(some);
    CHECK(whole.avg == 1.0);
    CHECK(whole.maj == 1.0);
    for (const auto& [k, pass] : whole.pass) CHECK(pass == 1.0);
    CHECK(part.avg == part.pass.at(1));
  }
}
