// SPDX-License-Identifier: Apache-2.0
#include "rl/Moments.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace taper;

TEST_CASE("moments are the mean and the unbiased variance") {
  const Moments m = moments_of(std::vector<double>{1.0, 2.0, 6.0});
  CHECK(m.mean == 3.0);
  CHECK(m.variance == 7.0);
  CHECK(moments_of(std::vector<double>{5.0}).mean == 5.0);
  CHECK(moments_of(std::vector<double>{5.0}).variance == 0.0);
  CHECK(moments_of({}).mean == 0.0);
}
