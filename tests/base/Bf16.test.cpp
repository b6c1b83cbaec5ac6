// SPDX-License-Identifier: Apache-2.0
#include "base/Bf16.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

using namespace taper;

TEST_CASE("every bf16 survives the way to float and back", "[bf16]") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16 value{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(value);
    if (std::isnan(wide))
      CHECK(std::isnan(to_float(to_bf16(wide))));
    else
      CHECK(to_bf16(wide).bits == value.bits);
  }
}

TEST_CASE("operands of products round like all else, but denormals are zero", "[bf16]") {
  const auto bits_of = [](std::uint32_t bits) {
    return to_operand(std::bit_cast<float>(bits)).bits;
  };
  CHECK(bits_of(0x00000001) == 0x0000);
  CHECK(bits_of(0x007fffff) == 0x0000);  // would round up to the least normal number
  CHECK(bits_of(0x807fffff) == 0x8000);
  CHECK(bits_of(0x00800000) == 0x0080);
  CHECK(bits_of(0x3f808000) == 0x3f80);  // ties to even
  CHECK(bits_of(0x3f818000) == 0x3f82);
  CHECK(bits_of(0x7f7fffff) == 0x7f80);
  CHECK(std::isnan(to_float(to_operand(std::bit_cast<float>(0x7f800001u)))));
}

TEST_CASE("bf16 rounds to nearest, ties to even", "[bf16]") {
  CHECK(to_float(to_bf16(1.0f + 0x1p-8f)) == 1.0f);                  // tie, down to even
  CHECK(to_float(to_bf16(1.0f + 3 * 0x1p-8f)) == 1.0f + 0x1p-6f);    // tie, up to even
  CHECK(to_float(to_bf16(1.0f + 0x1.1p-8f)) == 1.0f + 0x1p-7f);      // above the tie
  CHECK(to_float(to_bf16(-1.0f - 0x0.fp-8f)) == -1.0f);              // below the tie
  CHECK(to_bf16(std::bit_cast<float>(0x00008001u)).bits == 0x0001);  // denormals too
  CHECK(std::isinf(to_float(to_bf16(std::numeric_limits<float>::max()))));
  CHECK(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001u)))));
  CHECK(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}
