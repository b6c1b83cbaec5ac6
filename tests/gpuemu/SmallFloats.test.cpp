// SPDX-License-Identifier: Apache-2.0
#include "gpuemu/machine/SmallFloats.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>

using namespace taper::gpuemu;

TEST_CASE("half floats go to the nearest and back") {
  for (float x : {0.0f, 1.0f, -2.5f, 65504.0f, 0x1p-24f, 0x1p-14f})
    CHECK(half_to_float(float_to_half(x)) == x);
  CHECK(half_to_float(float_to_half(65520.0f)) == std::numeric_limits<float>::infinity());
  CHECK(half_to_float(float_to_half(1.0f + 0x1p-11f)) == 1.0f);
  CHECK(half_to_float(float_to_half(1.0f + 3 * 0x1p-11f)) == 1.0f + 0x1p-9f);
  CHECK(float_to_bf16(1.0f + 0x1p-8f) == float_to_bf16(1.0f));
}
