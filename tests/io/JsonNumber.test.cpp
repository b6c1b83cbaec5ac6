// SPDX-License-Identifier: Apache-2.0
#include "io/JsonNumber.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <charconv>
#include <cstdint>
#include <limits>

#include "base/Error.hpp"

using taper::log_prob_text;

TEST_CASE("few digits that give the same number back") {
  CHECK(log_prob_text(-0.1f) == "-0.1");
  CHECK(log_prob_text(0) == "0");
  for (std::uint32_t bits = 0x33800000; bits < 0x47000000; bits += 0x1357) {
    const float value = std::bit_cast<float>(bits);
    const std::string text = log_prob_text(value);
    float back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    if (back != value || text.size() > 15) FAIL(text);
  }
}

TEST_CASE("what JSON cannot hold is refused") {
  CHECK_THROWS_AS(log_prob_text(std::numeric_limits<float>::quiet_NaN()), taper::Error);
  CHECK_THROWS_AS(log_prob_text(-std::numeric_limits<float>::infinity()), taper::Error);
}
