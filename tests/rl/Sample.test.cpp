// SPDX-License-Identifier: Apache-2.0
#include "rl/Sample.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("all tokens carry a loss unless a mask says otherwise") {
  Sample s;
  s.response = {4, 5, 6};
  CHECK(s.loss_tokens() == 3);
  CHECK(s.carries_loss(2));
  s.mask = {1, 0, 1};
  CHECK(s.loss_tokens() == 2);
  CHECK(!s.carries_loss(1));
  CHECK(s.mean_advantage() == 0.0);
  s.advantages = {1.0f, 2.0f, 6.0f};
  CHECK(s.mean_advantage() == 3.0);
}
