// SPDX-License-Identifier: Apache-2.0
#include "base/Fixed.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

using namespace taper;

TEST_CASE("numbers are rounded to the nearest unit, ties to even") {
  const auto unit = [](double n) { return to_fixed(static_cast<float>(n * 0x1p-46)).units; };
  CHECK(unit(1) == 1);
  CHECK(unit(0.5) == 0);
  CHECK(unit(1.5) == 2);
  CHECK(unit(-2.5) == -2);
  CHECK(to_fixed(-1.0f).units == -(std::int64_t{1} << 46));
  CHECK(to_fixed(0.1f).units == static_cast<std::int64_t>(0.1f * 0x1p46f));  // all of its bits
  for (const float value : {0.0f, 1.0f, -3.25f, 0.1f, 32767.0f, 1e-9f})
    CHECK(std::abs(to_float(to_fixed(value)) - value) <= 0x1p-47f);
}

TEST_CASE("sums have the same bits in any order") {
  const float terms[] = {1e4f, 1e-7f, -9999.9f, 3.3e-9f, 0.25f, -1e-7f};
  Fixed up, down;
  for (int i = 0; i < 6; ++i) {
    up = up + to_fixed(terms[i]);
    down = down + to_fixed(terms[5 - i]);
  }
  CHECK(up == down);
  CHECK(up == (to_fixed(terms[3]) + to_fixed(terms[0])) +
                  (to_fixed(terms[5]) + to_fixed(terms[1])) +
                  (to_fixed(terms[4]) + to_fixed(terms[2])));
}

TEST_CASE("what is no number, or too large, is so whatever is added") {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, inf, -inf, 32768.0f, -32768.0f, 1e38f}) {
    CHECK(to_fixed(bad) == kNoFixed);
    for (const float value : {0.0f, 32767.9f, -32767.9f, bad}) {
      CHECK(kNoFixed + to_fixed(value) == kNoFixed);
      CHECK(to_fixed(value) + kNoFixed == kNoFixed);
    }
  }
  Fixed many = kNoFixed;
  for (int i = 0; i < 20; ++i) many = many + kNoFixed;
  CHECK(many == kNoFixed);
  CHECK(std::isnan(to_float(kNoFixed)));
  const Fixed large = to_fixed(20000.0f);
  CHECK(large + large == kNoFixed);
  CHECK((large + to_fixed(-20000.0f)).units == 0);
}
