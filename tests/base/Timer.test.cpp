// SPDX-License-Identifier: Apache-2.0
#include "base/Timer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <thread>

using namespace taper;

TEST_CASE("a timer counts from its start or from its last restart, and never back") {
  Timer timer;
  const double first = timer.seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double second = timer.seconds();
  CHECK(first >= 0.0);
  CHECK(second >= first + 0.020);
  timer.restart();
  const Timer other;
  CHECK(timer.seconds() >= other.seconds());  // the younger one has the shorter time
}
