// SPDX-License-Identifier: Apache-2.0
#include "base/ReplicaSnapshot.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("sequences of all lengths run, and those that wait are alive, too") {
  ReplicaSnapshot snapshot;
  CHECK(snapshot.running() == 0);
  snapshot.lengths[3] = 2;
  snapshot.lengths[19] = 60000;
  snapshot.waiting = 4;
  CHECK(snapshot.running() == 60002);
  CHECK(snapshot.alive() == 60006);
}

TEST_CASE("counts stay within what a field can hold") {
  CHECK(clamped<std::uint16_t>(-1) == 0);
  CHECK(clamped<std::uint16_t>(65535) == 65535);
  CHECK(clamped<std::uint16_t>(65536) == 65535);
  CHECK(clamped<std::uint32_t>(std::int64_t{1} << 40) == 4294967295u);
}
