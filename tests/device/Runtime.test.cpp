// SPDX-License-Identifier: Apache-2.0
#include "device/Runtime.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

// Of one thread, as the tests of this module have no others.
TEST_CASE("denormal results are flushed, and denormal operands are zero") {
  set_float_mode();
  volatile float smallest = 1.17549435e-38f;  // the smallest normal number
  CHECK(smallest / 2.0f == 0.0f);
  volatile float denormal = 1e-39f;
  CHECK(denormal * 1e10f == 0.0f);
}
