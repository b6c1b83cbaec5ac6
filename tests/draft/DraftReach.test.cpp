// SPDX-License-Identifier: Apache-2.0
#include "draft/DraftReach.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace taper;

TEST_CASE("shares of drafts and of right guesses by length") {
  DraftReach reach;
  CHECK(reach.shares() == DraftShares{});
  reach.add(0, 0);
  CHECK(reach.shares().drafted[0] == 1);  // known: none
  CHECK(reach.shares().accepted[0] == 0);
  for (int i = 0; i < 1000; ++i) {
    reach.add(4, 2);
    reach.add(20, 20);
  }
  const DraftShares shares = reach.shares();
  for (int i = 0; i < DraftShares::kLengths; ++i) {
    CHECK(std::abs(shares.drafted[i] - (i < 4 ? 255 : 128)) <= 2);
    CHECK(std::abs(shares.accepted[i] - (i < 2 ? 255 : 128)) <= 2);
  }
}

TEST_CASE("guesses that had no row count by their probability") {
  DraftReach reach;
  const std::vector<double> beyond{0.5, 0.25};
  for (int i = 0; i < 1000; ++i) reach.add(1, 1, beyond);
  const DraftShares shares = reach.shares();
  CHECK(shares.drafted == std::array<std::uint8_t, 8>{255, 255, 255});
  CHECK(shares.accepted == std::array<std::uint8_t, 8>{255, 128, 64});
}

TEST_CASE("the newest sequences count most, however many there were") {
  DraftReach reach;
  for (int i = 0; i < 100000; ++i) reach.add(3, 3);
  for (int i = 0; i < 300; ++i) reach.add(1, 0);
  CHECK(reach.shares().drafted[0] == 255);
  CHECK(reach.shares().drafted[2] < 5);
  CHECK(reach.shares().accepted[0] < 5);
}
