// SPDX-License-Identifier: Apache-2.0
#include "planner/Snapshot.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("a snapshot sums its replicas") {
  ReplicaSnapshot a, b;
  a.lengths[3] = 2;
  a.lengths[5] = 1;
  a.waiting = 4;
  a.finished = 7;
  b.lengths[19] = 60000;
  b.finished = 1;
  const Snapshot s{Layout::uniform(1, DivisorChain::of(2)), {a, b}, 0, 0, 0};
  CHECK(a.running() == 3);
  CHECK(a.alive() == 7);
  CHECK(s.alive() == 60007);
  CHECK(s.finished() == 8);
}
