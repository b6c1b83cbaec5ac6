// SPDX-License-Identifier: Apache-2.0
#include "reward/AdaptiveTimeout.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("the limit follows the anchor between two bounds") {
  const AdaptiveTimeoutOptions options{true, 1.5, 2.0, 30.0};
  struct Row {
    std::optional<double> anchor;
    double limit;  // seconds
  };
  const Row rows[] = {{std::nullopt, 30.0}, {0.0, 2.0},   {1.0, 2.0},   {4.0 / 3, 2.0}, {2.0, 3.0},
                      {8.0, 12.0},          {20.0, 30.0}, {21.0, 30.0}, {1e9, 30.0}};
  for (const Row& row : rows) {
    CAPTURE(row.anchor.value_or(-1.0));
    CHECK(adaptive_timeout(options, row.anchor) == row.limit);
  }
}

TEST_CASE("an answer is good above a half") {
  CHECK(Anchors::is_good(0.75));
  CHECK(!Anchors::is_good(0.5));
  CHECK(!Anchors::is_good(-1.0));
}

TEST_CASE("an anchor is the longest time that any rank has seen, of a reward and a prompt") {
  const TestRanks world;
  const Group& group = world.ranks.world();
  Anchors anchors;
  anchors.note("judge", 1, 2.0 + group.rank());
  anchors.note("judge", 1, 1.0);
  if (group.rank() == group.size() - 1) anchors.note("tests", 1, 0.5);  // the others know nothing
  CHECK(!anchors.find("judge", 1));                                     // of this rank alone
  anchors.share(group);
  CHECK(anchors.find("judge", 1) == 1.0 + group.size());
  CHECK(anchors.find("tests", 1) == 0.5);
  CHECK(!anchors.find("judge", 2));
  anchors.note("judge", 1, 0.25);
  anchors.share(group);
  CHECK(anchors.find("judge", 1) == 1.0 + group.size());  // shorter ones change nothing
  anchors.share(group);
  CHECK(anchors.table().size() == 2);
}

TEST_CASE("anchors go on from their table") {
  const TestRanks world;
  Anchors before, after;
  before.note("judge", 7, 1.25);
  before.share(world.ranks.world());
  after.set_table(before.table());
  CHECK(after.find("judge", 7) == 1.25);
  after.note("judge", 7, 2.5);
  after.share(world.ranks.world());
  CHECK(after.find("judge", 7) == 2.5);
}
