// SPDX-License-Identifier: Apache-2.0
#include "rl/Advantage.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "rl/GoldenRl.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Approx;

namespace {

std::vector<Sample> group(std::int64_t ordinal, std::vector<float> scores, int tokens = 1) {
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    Sample s;
    s.id.prompt = ordinal;
    s.id.sample = static_cast<int>(i);
    s.response.assign(tokens, 2);
    s.score = scores[i];
    samples.push_back(s);
  }
  return samples;
}

void set_from_scores(std::vector<Sample>& samples, const AdvantageOptions& options) {
  std::vector<std::vector<double>> rewards;
  for (Sample& s : samples) {
    s.reward = s.score;
    rewards.push_back(token_rewards(s, s.score, {}, 0.0));
  }
  SampleSet set(std::move(samples));
  set_advantages(set, rewards, options);
  samples = set.here();
}

constexpr AdvantageEstimator kAll[] = {
    AdvantageEstimator::kGrpo, AdvantageEstimator::kDrGrpo, AdvantageEstimator::kRloo,
    AdvantageEstimator::kReinforcePlusPlus, AdvantageEstimator::kReinforcePlusPlusBaseline};

}  // namespace

TEST_CASE("advantages are those of PyTorch for all estimators, normalizations and rewards") {
  const Json& cases = golden_rl()["advantages"];
  REQUIRE(cases.size() == 60);
  for (const Json& c : cases) {
    SampleSet set(golden_samples(c["batch"], c["mask_truncated"].get<bool>()));
    const std::vector<Sample>& samples = set.here();
    AdvantageOptions options;
    options.estimator = named(named_estimators(), c["estimator"]);
    options.normalization = named(named_normalizations(), c["normalization"]);
    options.gamma = c["gamma"].get<double>();
    CHECK(options.problems().empty());
    KlOptions kl;
    if (!c["kl"].is_null()) {
      kl.place = KlPlace::kReward;
      kl.coef = c["kl"]["coef"].get<double>();
      kl.estimator = golden_estimator(c["kl"]["estimator"]);
      CHECK(mean_kl(set, kl.estimator) == near(c["kl_mean"].get<double>()));
    }
    std::vector<std::vector<double>> rewards;
    for (const Sample& s : samples) rewards.push_back(token_rewards(s, s.score, kl, kl.coef));
    set_advantages(set, rewards, options);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto expected = floats(c["values"][i]);
      REQUIRE(samples[i].advantages.size() == expected.size());
      for (std::size_t t = 0; t < expected.size(); ++t) {
        INFO(c["batch"] << " " << c["estimator"] << " " << c["normalization"] << " sample " << i
                        << " token " << t);
        CHECK(samples[i].advantages[t] == near(expected[t]));
      }
    }
  }
}

TEST_CASE("advantages are scores centred by group and divided by its unbiased deviation") {
  auto samples = group(3, {1, 0, 0, 1}, 2);
  for (auto& s : group(4, {2, 5})) samples.push_back(s);
  set_from_scores(samples, {});
  const double deviation = std::sqrt(4 * 0.25 / 3);
  CHECK(samples[0].advantages[0] == Approx(0.5 / (deviation + 1e-6)));
  CHECK(samples[0].advantages[1] == samples[0].advantages[0]);
  CHECK(samples[0].mean_advantage() == samples[0].advantages[0]);
  CHECK(samples[1].advantages[0] == Approx(-0.5 / (deviation + 1e-6)));
  CHECK(samples[4].advantages[0] == Approx(-1.5 / (std::sqrt(4.5) + 1e-6)));
  CHECK(samples[5].advantages[0] == Approx(1.5 / (std::sqrt(4.5) + 1e-6)));
}

TEST_CASE("a group of equal scores has no advantage where groups are compared") {
  for (const auto estimator : kAll) {
    auto equal = group(0, {1, 1, 1});
    AdvantageOptions options;
    options.estimator = estimator;
    set_from_scores(equal, options);
    for (const auto& s : equal) CHECK(s.advantages[0] == 0.0f);
  }
}

TEST_CASE("a group of one keeps its score, as far as nothing else normalizes it") {
  for (const auto estimator : kAll) {
    auto one = group(0, {0.7f}, 3);
    AdvantageOptions options;
    options.estimator = estimator;
    if (!options.problems().empty()) continue;
    set_from_scores(one, options);
    const bool whitened = options.normalization_used() == AdvantageNormalization::kBatch;
    for (const float a : one[0].advantages) CHECK(a == (whitened ? near(0.0) : near(0.7)));
  }
}

TEST_CASE("a sample without a response has a score, but no tokens") {
  auto samples = group(0, {3, 1});
  samples[0].response.clear();
  set_from_scores(samples, {AdvantageEstimator::kDrGrpo});
  CHECK(samples[0].advantages.empty());
  CHECK(samples[1].advantages == std::vector<float>{-1.0f});
}

TEST_CASE("where no token carries a loss, whitening stays finite") {
  auto samples = group(0, {3, 1}, 2);
  for (auto& s : samples) s.mask = {0, 0};
  set_from_scores(samples, {AdvantageEstimator::kReinforcePlusPlus});
  for (const auto& s : samples)
    for (const float a : s.advantages) CHECK(std::isfinite(a));
}

TEST_CASE("normalizations that an estimator does not have are refused with what it has") {
  const auto problem = [](AdvantageEstimator estimator, AdvantageNormalization normalization) {
    const auto problems = AdvantageOptions{estimator, normalization}.problems();
    return problems.empty() ? "" : problems.front();
  };
  CHECK(problem(AdvantageEstimator::kGrpo, AdvantageNormalization::kBatch).empty());
  CHECK(problem(AdvantageEstimator::kRloo, AdvantageNormalization::kGroup)
            .find("Algorithm/Estimator is rloo") != std::string::npos);
  CHECK(problem(AdvantageEstimator::kDrGrpo, AdvantageNormalization::kGroup).find("dr-grpo") !=
        std::string::npos);
  CHECK(problem(AdvantageEstimator::kReinforcePlusPlus, AdvantageNormalization::kGroup)
            .find("reinforce++") != std::string::npos);
  CHECK(problem(AdvantageEstimator::kGae, AdvantageNormalization::kGroup).find("gae") !=
        std::string::npos);
}

TEST_CASE("discounts are refused where an estimator does not see tokens") {
  AdvantageOptions discounted;
  discounted.gamma = 0.9;
  CHECK(discounted.problems().size() == 1);
  discounted.lambda = 0.9;
  CHECK(discounted.problems().size() == 2);
  discounted.estimator = AdvantageEstimator::kReinforcePlusPlus;
  CHECK(discounted.problems().size() == 1);
  discounted.estimator = AdvantageEstimator::kGae;
  CHECK(discounted.problems().empty());
}
