// SPDX-License-Identifier: Apache-2.0
#include "io/JsonNumber.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <charconv>
#include <cstdint>
#include <limits>

#include "base/Error.hpp"

using taper::shortest_number;

TEST_CASE("few digits that give the same number back") {
  CHECK(shortest_number(-0.1f) == "-0.1");
  CHECK(shortest_number(0) == "0");
  for (std::uint32_t bits = 0x33800000; bits < 0x47000000; bits += 0x1357) {
    const float value = std::bit_cast<float>(bits);
    const std::string text = shortest_number(value);
    float back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    if (back != value || text.size() > 15) FAIL(text);
  }
}

TEST_CASE("what JSON cannot hold is refused") {
  CHECK_THROWS_AS(shortest_number(std::numeric_limits<float>::quiet_NaN()), taper::Error);
  CHECK_THROWS_AS(shortest_number(-std::numeric_limits<float>::infinity()), taper::Error);
}
