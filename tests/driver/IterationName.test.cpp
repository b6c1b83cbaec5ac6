// SPDX-License-Identifier: Apache-2.0
#include "driver/IterationName.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("names of iterations are read back, also beyond six digits") {
  for (const std::int64_t iteration : {0, 7, 999'999, 1'000'000, 123'456'789}) {
    INFO(iteration_name(iteration));
    CHECK(iteration_of_name(iteration_name(iteration)) == iteration);
  }
  CHECK(iteration_name(12) == "iter_000012");
  CHECK(iteration_name(1'000'000) == "iter_1000000");
}

TEST_CASE("other names are none of an iteration") {
  for (const char* name :
       {"", "iter_", "iter_12", "iter_0000012", "iter_-00012", "iter_+00012", "iter_000012.old",
        "iter_000012 ", "iter_00001x", "Iter_000012", "iter_99999999999999999999"}) {
    INFO(name);
    CHECK(!iteration_of_name(name));
  }
}
