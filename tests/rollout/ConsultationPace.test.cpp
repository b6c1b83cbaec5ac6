// SPDX-License-Identifier: Apache-2.0
#include "rollout/ConsultationPace.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

namespace {

constexpr std::int64_t kMs = 1'000'000, kSecond = 1000 * kMs;

// A pace whose cost never matters, unless a share is given.
ConsultationPace pace(std::int64_t period_ns, int steps, double share = 1.0) {
  return ConsultationPace(ConsultationOptions{period_ns, steps, share});
}

}  // namespace

TEST_CASE("leaders consult as often as the planner was made for, and bad periods are problems") {
  CHECK(ConsultationOptions().problems().empty());
  CHECK(ConsultationOptions().period_ns == PlannerOptions().consult_ns);
  CHECK(ConsultationOptions().period_steps == PlannerOptions().consult_steps);
  for (const ConsultationOptions& bad : {ConsultationOptions{-1, 1, 0.1}, {0, 0, 0.1}, {0, 1, 0.0}})
    CHECK(bad.problems().size() == 1);
}

TEST_CASE("a consultation is due after both its period and its steps, counted from the last") {
  ConsultationPace p = pace(10 * kMs, 2);
  CHECK_FALSE(p.is_due(20 * kMs));  // no step yet
  p.measure(12 * kMs, 3, 0);
  CHECK_FALSE(p.is_due(20 * kMs));
  p.measure(14 * kMs, 3, 0);
  CHECK_FALSE(p.is_due(10 * kMs - 1));
  CHECK(p.is_due(10 * kMs));
  p.restart(20 * kMs);
  CHECK_FALSE(p.is_due(kSecond));
  p.measure(21 * kMs, 3, 0);
  p.measure(22 * kMs, 3, 0);
  CHECK_FALSE(p.is_due(30 * kMs - 1));
  CHECK(p.is_due(30 * kMs));
}

TEST_CASE("what the planner does not predict is left out of a replica's speed") {
  ConsultationPace p = pace(10 * kMs, 1);
  p.resume(5 * kMs);
  p.leave_out(2 * kMs);
  p.measure(11 * kMs, 3, 2 * kMs);
  CHECK(p.speed(3) == 2 * kRatioOne);
}

TEST_CASE("a decision can ask for a pause, of a second at most") {
  ConsultationPace p = pace(10 * kMs, 1);
  p.measure(1, 3, 0);
  p.set_wait(5 * kMs);  // the period is longer
  CHECK(p.is_due(10 * kMs));
  p.set_wait(300 * kMs);
  CHECK_FALSE(p.is_due(300 * kMs - 1));
  CHECK(p.is_due(300 * kMs));
  p.set_wait(60 * kSecond);
  CHECK_FALSE(p.is_due(kSecond - 1));
  CHECK(p.is_due(kSecond));
}

TEST_CASE(
    "consulting, the next time included, stays within its share, ten times in the first second") {
  ConsultationPace p = pace(0, 1, 0.001);
  p.measure(1, 3, 0);
  p.add_cost(3 * kMs);
  p.add_consultation();  // the next one will cost as much: 6 ms of 10 * 0.6 s
  CHECK_FALSE(p.is_due(600 * kMs - 1000));
  CHECK(p.is_due(600 * kMs));
  p.add_cost(9 * kMs);
  p.add_consultation();  // 12 ms and 6 ms: 18 ms of 18 s, 9 s of which are the head start
  CHECK(p.count() == 2);
  CHECK(p.cost() == 12 * kMs);
  CHECK_FALSE(p.is_due(9 * kSecond - kMs));
  CHECK(p.is_due(9 * kSecond));
  p.add_cost(kSecond);
  p.restart(9 * kSecond);
  p.measure(1, 3, 0);
  CHECK_FALSE(p.is_due(19 * kSecond - kMs));
  CHECK(p.is_due(19 * kSecond));  // so long no rank goes without the others
}

TEST_CASE("speed is what steps took by what was expected of them, without what lies in between") {
  ConsultationPace p = pace(0, 1);
  CHECK(p.speed(3) == 0);
  p.measure(10, 3, 0);  // nothing was expected
  CHECK(p.speed(3) == 0);
  p.resume(100);
  p.measure(130, 3, 20);
  p.resume(1000);
  p.measure(1030, 3, 20);
  CHECK(p.speed(3) == 1024 * 3 / 2);
  p.restart(1030);
  CHECK(p.speed(3) == 0);
  p.resume(2000);
  p.measure(2001, 3, 5000);
  CHECK(p.speed(3) == 1);  // not 0: there is something
  p.resume(3000);
  p.measure(3000 + 1'000'000'000, 3, 1);
  CHECK(p.speed(3) == 65535);
}

TEST_CASE("the speed of a number of sequences is not that of twice as many") {
  ConsultationPace p = pace(0, 1);
  const auto step = [&](std::int64_t at, int sequences, std::int64_t ns) {
    p.resume(at);
    p.measure(at + ns, sequences, 20);
  };
  step(100, 4, 60);
  step(200, 3, 20);
  step(300, 2, 20);
  CHECK(p.speed(4) == 0);
  CHECK(p.speed(2) == 1024);
  CHECK(p.speed(3) == 1024);
  CHECK(p.speed(1) == 0);
  CHECK(p.speed(0) == 0);
}
