// SPDX-License-Identifier: Apache-2.0
#include "rl/PolicyLoss.hpp"

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

using namespace taper;
using Catch::Approx;

namespace {

double total_loss(const PolicyLossOptions& o, TokenInput t, double w) {
  LossSums sums;
  add_token_loss(o, t, w, sums);
  return sums.policy + o.kl_coef * sums.kl;
}

}  // namespace

TEST_CASE("the clipped loss has the values of its definition") {
  PolicyLossOptions o;
  o.clip_low = 0.2;
  o.clip_high = 0.28;
  const auto loss = [&](double ratio, float advantage) {
    return total_loss(o, {static_cast<float>(std::log(ratio)), 0.0f, 0.0f, advantage, 0.0f}, 1.0);
  };
  CHECK(loss(1.0, 2.0f) == Approx(-2.0));
  CHECK(loss(1.1, 2.0f) == Approx(-2.2));
  CHECK(loss(1.5, 2.0f) == Approx(-2.56));  // clipped above
  CHECK(loss(0.5, 2.0f) == Approx(-1.0));   // a falling ratio is not clipped for a good response
  CHECK(loss(0.5, -2.0f) == Approx(1.6));   // clipped below
  CHECK(loss(1.5, -2.0f) == Approx(3.0));
  CHECK(loss(9.0, -2.0f) == Approx(6.0));  // dual clip at 3
}

TEST_CASE("slopes are the derivatives of the loss, for all KL estimators") {
  for (const auto kl : {KlEstimator::kK1, KlEstimator::kK2, KlEstimator::kK3})
    for (const double coef : {0.0, 0.3})
      for (const float advantage : {1.5f, -0.7f, 0.0f})
        for (const float now : {-3.0f, -1.13f, -0.91f, -0.2f}) {
          PolicyLossOptions o;
          o.kl = kl;
          o.kl_coef = coef;
          const TokenInput t{now, -1.0f, -1.4f, advantage, 0.5f};
          LossSums sums;
          const double slope = add_token_loss(o, t, 0.25, sums);
          const float h = 1e-3f;
          TokenInput up = t, down = t;
          up.log_prob += h;
          down.log_prob -= h;
          const double difference = (total_loss(o, up, 0.25) - total_loss(o, down, 0.25)) /
                                    (static_cast<double>(up.log_prob) - down.log_prob);
          INFO("kl " << static_cast<int>(kl) << " coef " << coef << " advantage " << advantage
                     << " now " << now);
          CHECK(slope == Approx(difference).margin(2e-5));
        }
}

TEST_CASE("extreme ratios stay finite") {
  PolicyLossOptions o;
  o.kl_coef = 0.1;
  for (const float now : {0.0f, -80.0f}) {
    LossSums sums;
    const double slope = add_token_loss(o, {now, -60.0f, -70.0f, -1.0f, 0.0f}, 1.0, sums);
    CHECK(std::isfinite(slope));
    CHECK(std::isfinite(sums.policy));
    CHECK(std::isfinite(sums.kl));
  }
}

TEST_CASE("token weights of the four aggregations") {
  const StepTotals totals{20, 4};
  PolicyLossOptions o;
  o.length_norm = 8;
  o.aggregation = LossAggregation::kTokenMean;
  CHECK(token_weight(o, totals, 5) == Approx(1.0 / 20));
  o.aggregation = LossAggregation::kSeqMeanTokenSum;
  CHECK(token_weight(o, totals, 5) == Approx(1.0 / 4));
  o.aggregation = LossAggregation::kSeqMeanTokenMean;
  CHECK(token_weight(o, totals, 5) == Approx(1.0 / 20));
  CHECK(token_weight(o, totals, 10) == Approx(1.0 / 40));
  o.aggregation = LossAggregation::kSeqMeanTokenSumNorm;
  CHECK(token_weight(o, totals, 5) == Approx(1.0 / 32));
}
