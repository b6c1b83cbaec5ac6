// SPDX-License-Identifier: Apache-2.0
#include "planner/DraftTable.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

#include "base/Error.hpp"

using namespace taper;

namespace {

DraftShares shares(int drafted, int accepted) {
  DraftShares s;
  for (int i = 0; i < 3; ++i) {
    s.drafted[i] = static_cast<std::uint8_t>(drafted - 10 * i);
    s.accepted[i] = static_cast<std::uint8_t>(accepted - 10 * i);
  }
  return s;
}

}  // namespace

TEST_CASE("nothing is known of those who make no drafts") {
  DraftTable table;
  table.observe(4, {});
  table.observe(0, shares(200, 100));
  CHECK(table.empty());
  CHECK(table.shares(4) == DraftShares{});
}

TEST_CASE("a table tells what was reported of as many sequences, or of the nearest number") {
  DraftTable table;
  table.observe(4, shares(200, 100));
  CHECK_FALSE(table.empty());
  CHECK(table.shares(5) == table.shares(4));
  CHECK(std::abs(table.shares(4).drafted[0] - 200) <= 1);
  CHECK(std::abs(table.shares(4).accepted[2] - 80) <= 1);
  CHECK(table.shares(100) == table.shares(4));
  table.observe(64, shares(50, 30));
  CHECK(std::abs(table.shares(100).drafted[0] - 50) <= 1);
  CHECK(std::abs(table.shares(3).drafted[0] - 200) <= 1);
  // Who knows nothing changes nothing; the newest reports of others count most.
  table.observe(4, {});
  CHECK(std::abs(table.shares(4).drafted[0] - 200) <= 1);
  DraftShares with_model = shares(200, 100);
  with_model.model = 700;
  table.observe(512, with_model);
  CHECK(table.shares(600).model == 700);
  CHECK(table.shares(5).model == 0);
  DraftShares none;
  none.drafted[0] = 1;
  for (int i = 0; i < 100; ++i) table.observe(4, none);
  CHECK(table.shares(4).drafted[0] <= 1);
  CHECK(table.shares(4).accepted[0] == 0);
}

TEST_CASE("a table is saved and loaded, and a damaged one refused") {
  DraftTable table, other;
  table.observe(4, shares(200, 100));
  DraftShares with_model = shares(50, 30);
  with_model.model = 900;
  table.observe(64, with_model);
  other.load(table.save());
  CHECK(other == table);
  std::string bytes = table.save();
  CHECK_THROWS_AS(other.load(bytes.substr(8)), Error);
  bytes[2 * 18 * 8 + 8 + 7] = 1;
  CHECK_THROWS_AS(other.load(bytes), Error);
}
