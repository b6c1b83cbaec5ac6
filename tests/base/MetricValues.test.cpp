// SPDX-License-Identifier: Apache-2.0
#include "base/MetricValues.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

using namespace taper;

TEST_CASE("figures keep their order, and the first of a name counts") {
  MetricValues values{{"a", 1.0}, {"b", 2.0}};
  add(values, {{"a", 3.0}, {"c", -0.5}});
  REQUIRE(values.size() == 4);
  CHECK(values[2].first == "a");
  CHECK(values[3] == std::pair<std::string, double>{"c", -0.5});
  CHECK(value_of(values, "a") == 1.0);
  CHECK(value_of(values, "c") == -0.5);
}

TEST_CASE("a figure that is not there is no number") {
  CHECK(std::isnan(value_of({}, "a")));
  CHECK(std::isnan(value_of({{"ab", 1.0}}, "a")));
}
