// SPDX-License-Identifier: Apache-2.0
#include "base/FloatMode.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

// Read and written at run time, in the mode of the moment.
float product(float a, float b) {
  volatile float x = a, y = b;
  return x * y;
}

}  // namespace

TEST_CASE("denormals are flushed until the mode of before is written again", "[float_mode]") {
  const FloatMode before = flush_on_this_thread();
  const float result = product(0x1p-100f, 0x1p-30f);   // would be denormal
  const float operand = product(0x1p-130f, 0x1p+20f);  // is denormal
  write_float_mode(before);
  CHECK(read_float_mode().bits == before.bits);
  CHECK(result == 0.0f);
  CHECK(operand == 0.0f);
}
