// SPDX-License-Identifier: Apache-2.0
#include "device/Runtime.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("all computing threads get the floating-point mode, and then flush denormals") {
  set_float_mode();
  CHECK(has_float_mode());
  volatile float smallest = 1.17549435e-38f;  // the smallest normal number
  CHECK(smallest / 2.0f == 0.0f);
}
