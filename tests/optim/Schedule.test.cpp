// SPDX-License-Identifier: Apache-2.0
#include "optim/Schedule.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

using namespace taper;
using Catch::Approx;

TEST_CASE("warm-up is linear and ends at the peak") {
  const ScheduleOptions o{ScheduleOptions::Kind::kConstant, 2e-4, 4, 0, 0.1};
  CHECK(learning_rate(o, 0) == Approx(0.5e-4));
  CHECK(learning_rate(o, 3) == Approx(2e-4));
  CHECK(learning_rate(o, 1000) == Approx(2e-4));
}

TEST_CASE("the cosine goes from the peak to its final share and stays there") {
  const ScheduleOptions o{ScheduleOptions::Kind::kCosine, 1.0, 10, 110, 0.1};
  CHECK(learning_rate(o, 10) == Approx(1.0));
  CHECK(learning_rate(o, 60) == Approx(0.55));
  CHECK(learning_rate(o, 110) == Approx(0.1));
  CHECK(learning_rate(o, 5000) == Approx(0.1));
}

// Of verl's get_wsd_schedule_with_warmup (tests/golden/make_schedules.py) but for the warm-up,
// which begins at one step of it, not at zero.
TEST_CASE("warm-up, stable, decay is that of the reference") {
  std::ifstream file(TAPER_GOLDEN_DIR "/schedules.txt");
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    ScheduleOptions o{ScheduleOptions::Kind::kWsd, 1.0, 0, 0, 0.0};
    std::int64_t step = 0;
    double expected = 0;
    REQUIRE(words >> o.warmup_steps >> o.total_steps >> o.final_share >> o.stable_share >> step >>
            expected);
    INFO(line);
    CHECK(std::abs(learning_rate(o, step) - expected) <= 1e-15);
    ++lines;
  }
  CHECK(lines > 100);
}

TEST_CASE("impossible schedules are named") {
  CHECK(ScheduleOptions{}.problems().empty());
  CHECK(ScheduleOptions{ScheduleOptions::Kind::kCosine, 1.0, 10, 10, 0.1}.problems().size() == 1);
  CHECK(ScheduleOptions{ScheduleOptions::Kind::kConstant, -1.0, -1, 0, 2.0}.problems().size() == 3);
  CHECK(ScheduleOptions{ScheduleOptions::Kind::kWsd, 1.0, 10, 10, 0.1, 1.5}.problems().size() == 2);
  const auto cosine = ScheduleOptions{ScheduleOptions::Kind::kCosine, 1.0, 10, 7, 0.1}.problems();
  REQUIRE(cosine.size() == 1);
  CHECK(cosine[0].find("Optimizer/Total Steps is 7 and Optimizer/Warmup Steps 10") == 0);
}
