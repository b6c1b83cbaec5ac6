// SPDX-License-Identifier: Apache-2.0
#include "rl/KlPenalty.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "rl/GoldenRl.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Approx;

TEST_CASE("KL estimates have the values of their definitions, and their derivatives") {
  for (const double d : {-1.5, -0.1, 0.0, 0.7, 2.0}) {
    CHECK(kl_estimate(KlEstimator::kK1, d - 1, -1).value == Approx(d));
    CHECK(kl_estimate(KlEstimator::kK2, d - 1, -1).value == Approx(d * d / 2));
    CHECK(kl_estimate(KlEstimator::kK3, d - 1, -1).value == Approx(std::exp(-d) + d - 1));
    for (const auto& [name, kind] : named_kl_estimators()) {
      const double h = 1e-5, up = kl_estimate(kind, d + h, 0).value;
      CHECK(kl_estimate(kind, d, 0).slope ==
            Approx((up - kl_estimate(kind, d - h, 0).value) / (2 * h)).margin(1e-6));
    }
  }
  CHECK(kl_estimate(KlEstimator::kK3, -60, 0).value == 10.0);
  CHECK(kl_estimate(KlEstimator::kK3, -60, 0).slope == 0.0);
}

TEST_CASE("the score is the reward of the last token, and the KL is taken from every token's") {
  Sample s;
  s.response = {5, 6, 7};
  s.log_probs = {-1.0f, -2.0f, -0.5f};
  s.score = 2.0f;
  CHECK(token_rewards(s, s.score, {}, 0.0) == std::vector<double>{0.0, 0.0, 2.0});
  s.ref_log_probs = {-1.5f, -1.0f, -0.5f};
  KlOptions kl;
  kl.coef = 9.0;  // at the start; now it is 0.5
  kl.estimator = KlEstimator::kK1;
  CHECK(token_rewards(s, s.score, kl, 0.5) == std::vector<double>{0.0, 0.0, 2.0});
  kl.place = KlPlace::kReward;
  CHECK(token_rewards(s, s.score, kl, 0.5) == std::vector<double>{-0.25, 0.5, 2.0});
  CHECK(mean_kl(SampleSet({s, Sample()}), KlEstimator::kK1) == Approx(-0.5 / 3));
  CHECK(token_rewards(Sample(), 0.0, kl, 0.5).empty());
}

TEST_CASE("the adaptive coefficient is that of the reference, the fixed one stays") {
  const Json& c = golden_rl()["controller"];
  KlOptions options;
  options.coef = c["coef"].get<double>();
  options.target = c["target"].get<double>();
  options.horizon = c["horizon"].get<double>();
  const auto samples = c["samples"].get<std::int64_t>();
  CHECK(adapted_kl_coef(options, 0.3, 5.0, samples) == 0.3);
  options.control = KlControl::kAdaptive;
  double coef = options.coef;
  for (std::size_t i = 0; i < c["kls"].size(); ++i) {
    coef = adapted_kl_coef(options, coef, c["kls"][i].get<double>(), samples);
    CHECK(coef == Approx(c["values"][i].get<double>()).epsilon(1e-8));
  }
  options.horizon = 10.0;
  CHECK(adapted_kl_coef(options, 1.0, 0.0, 49) == Approx(0.02));  // the most that runs may have
}

TEST_CASE("settings of the KL that do not fit each other are refused") {
  KlOptions o;
  CHECK(o.problems().empty());
  o.place = KlPlace::kReward;
  REQUIRE(o.problems().size() == 1);  // no coefficient
  CHECK(o.problems().front().find("Algorithm/KL Coefficient") != std::string::npos);
  o.coef = 0.1;
  CHECK(o.problems().empty());
  o.control = KlControl::kAdaptive;
  CHECK(o.problems().empty());
  o.place = KlPlace::kLoss;
  REQUIRE(o.problems().size() == 1);
  CHECK(o.problems().front().find("Algorithm/KL Control") != std::string::npos);
}
