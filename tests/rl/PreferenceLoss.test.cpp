// SPDX-License-Identifier: Apache-2.0
#include "rl/PreferenceLoss.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>

using namespace taper;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

TEST_CASE("the loss of equal rewards is log 2, less where the chosen one leads") {
  CHECK_THAT(preference_loss(0, 0, 0, 0).loss, WithinRel(std::log(2.0), 1e-15));
  CHECK_THAT(preference_loss(2, 1, 0, 0).loss, WithinRel(std::log1p(std::exp(-1.0)), 1e-15));
  CHECK_THAT(preference_loss(1, 2, 0, 0).loss, WithinRel(1 + std::log1p(std::exp(-1.0)), 1e-15));
  // A margin is taken off the lead; the center is where the rewards cancel.
  CHECK(preference_loss(2, 1, 1, 0).loss == preference_loss(0, 0, 0, 0).loss);
  CHECK(preference_loss(1, -1, 0, 0.5).loss == preference_loss(1, -1, 0, 0).loss);
  CHECK_THAT(preference_loss(1, 2, 0, 0.5).loss - preference_loss(1, 2, 0, 0).loss,
             WithinRel(4.5, 1e-14));
}

TEST_CASE("slopes are those of finite differences") {
  constexpr double kStep = 1e-6;
  for (const double lead : {-3.0, -0.2, 0.0, 0.7, 5.0})
    for (const double margin : {0.0, 0.4})
      for (const double center : {0.0, 0.01}) {
        const double chosen = 0.3 + lead, rejected = 0.3;
        const auto loss = [&](double a, double b) {
          return preference_loss(a, b, margin, center).loss;
        };
        const PairLoss p = preference_loss(chosen, rejected, margin, center);
        CHECK_THAT(p.by_chosen,
                   WithinAbs((loss(chosen + kStep, rejected) - loss(chosen - kStep, rejected)) /
                                 (2 * kStep),
                             1e-8));
        CHECK_THAT(p.by_rejected,
                   WithinAbs((loss(chosen, rejected + kStep) - loss(chosen, rejected - kStep)) /
                                 (2 * kStep),
                             1e-8));
      }
}

TEST_CASE("rewards far apart overflow nothing") {
  const PairLoss lost = preference_loss(-1e4, 1e4, 0, 0), won = preference_loss(1e4, -1e4, 0, 0);
  CHECK(lost.loss == 2e4);
  CHECK(lost.by_chosen == -1.0);
  CHECK(won.loss == 0.0);
  CHECK(won.by_chosen == 0.0);
}
