// SPDX-License-Identifier: Apache-2.0
#include "planner/Plan.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("plans as text") {
  const Layout layout = Layout::uniform(2, DivisorChain::of(4));
  CHECK(to_string(stay_in(layout)) == "2x2 now");
  CHECK(to_string({layout, PlanStart::kNow, 0, Repack::kYes}) == "2x2 repacked now");
  CHECK(to_string({layout, PlanStart::kBelow, 1, Repack::kNo}) == "2x2 at 1 sequence");
  CHECK(to_string({layout, PlanStart::kBelow, 30, Repack::kNo}) == "2x2 at 30 sequences");
}
