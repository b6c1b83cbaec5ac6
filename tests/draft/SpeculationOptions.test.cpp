// SPDX-License-Identifier: Apache-2.0
#include "draft/SpeculationOptions.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("speculation is off unless it is asked for") {
  SpeculationOptions o;
  CHECK_FALSE(o.is_on());
  for (const auto& [name, mode] : named_speculation_modes()) {
    o.mode = mode;
    CHECK(o.is_on() == (name != "off"));
  }
}
