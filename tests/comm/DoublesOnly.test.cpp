// SPDX-License-Identifier: Apache-2.0
#include "comm/DoublesOnly.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <span>
#include <vector>

using namespace taper;

namespace {

struct One {
  double a = 0.0;
};
struct Many {
  double a, b = 0.0, c;
};
struct WithInteger {
  double a;
  std::int64_t b;
};
struct WithFloats {
  float a, b;
};
struct WithPadding {
  double a;
  float b;
};
struct WithList {
  double a;
  std::vector<double> b;
};

}  // namespace

TEST_CASE("a struct qualifies if doubles are all that it has") {
  STATIC_REQUIRE(DoublesOnly<One>);
  STATIC_REQUIRE(DoublesOnly<Many>);
  STATIC_REQUIRE_FALSE(DoublesOnly<WithInteger>);
  STATIC_REQUIRE_FALSE(DoublesOnly<WithFloats>);
  STATIC_REQUIRE_FALSE(DoublesOnly<WithPadding>);
  STATIC_REQUIRE_FALSE(DoublesOnly<WithList>);
  STATIC_REQUIRE_FALSE(DoublesOnly<double>);
  STATIC_REQUIRE_FALSE(DoublesOnly<std::vector<double>>);
  STATIC_REQUIRE_FALSE(DoublesOnly<std::span<double>>);
}
