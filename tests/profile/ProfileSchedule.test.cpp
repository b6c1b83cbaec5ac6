// SPDX-License-Identifier: Apache-2.0
//
// The schedule on a made-up machine: times come from a formula with noise, seconds are summed up.
#include "profile/ProfileSchedule.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>

#include "base/Random.hpp"

using namespace taper;

namespace {

constexpr int kPositions = 2048;

ProfileSide side(int degree, std::vector<PairClass> classes) {
  return {degree, std::move(classes), {64, 256, [](int tokens, int batch) {
                                         return std::int64_t{kPositions - (tokens - batch)} *
                                                    batch +
                                                (tokens - batch);
                                       }}};
}

struct Machine {
  double noise = 0;  // relative, uniform
  double kink = 0;   // extra share of time beyond 16 sequences
  RandomStream random{3, RandomPurpose::kTest, 0, 0};
  std::vector<ProfileVisit> visits = {};

  double seconds(const StepShape& s, int degree) {
    const double base = 2e-4 + 4e-5 * s.tokens / degree + 1e-8 * static_cast<double>(s.context);
    return s.batch > 16 ? base * (1 + kink * std::log2(s.batch / 16.0)) : base;
  }

  // Follows the schedule to its end, or for `most` visits.
  void drive(ProfileSchedule& schedule, ProfileRecord& record, int most = 100000) {
    for (int i = 0; i < most; ++i) {
      const auto visit = schedule.next();
      if (!visit) return;
      visits.push_back(*visit);
      for (const ProfileSide& s : schedule.sides()) {
        if (s.degree != visit->degree) continue;
        for (const PairClass pair : s.classes) {
          std::vector<std::int64_t> ns;
          const double shift = 1 + noise * (static_cast<double>(random.below(2001)) / 1000.0 - 1);
          for (int k = 0; k < visit->steps; ++k)
            ns.push_back(std::llround(seconds(visit->shape, visit->degree) * 1e9 * shift));
          schedule.add(*visit, pair, ns);
        }
      }
      record.seconds_spent +=
          seconds(visit->shape, visit->degree) * (visit->warm_up + visit->steps);
    }
  }
};

int least_visits(const ProfileRecord& record) {
  std::size_t least = 1000;
  for (const auto& p : record.points) least = std::min(least, p.visits.size());
  return static_cast<int>(least);
}

std::size_t coarse_points(int degree) {
  return coarse_grid(side(degree, {}).limits).size();
}

}  // namespace

TEST_CASE("a machine that interpolation knows exactly is measured on the coarse grid alone") {
  ProfileRecord record;
  record.budget = 1000;
  ProfileSchedule schedule({side(1, {PairClass::kSameNode}), side(2, {PairClass::kOtherNode})},
                           record);
  Machine machine;
  machine.drive(schedule, record);
  CHECK(record.points.size() == coarse_points(1) + coarse_points(2));
  CHECK(least_visits(record) == ProfileSchedule::kFullVisits);
  CHECK(schedule.fit_error(1, PairClass::kSameNode).p90 < 1000);
  CHECK(schedule.repeat_noise(1, PairClass::kSameNode).max == 0);
  CHECK(schedule.fit_error(2, PairClass::kSameNode).max == 0);  // there is nothing of it
  CHECK(schedule.samples().size() + schedule.verify_samples().size() == record.points.size());
  CHECK(schedule.verify_samples().size() == 14);
}

TEST_CASE("points are added where interpolation misses, until it does not") {
  ProfileRecord record;
  record.budget = 10000;
  ProfileSchedule schedule({side(1, {PairClass::kSameNode})}, record);
  Machine machine{.kink = 0.4};
  machine.drive(schedule, record);
  REQUIRE(record.points.size() > coarse_points(1));
  CHECK(record.points.size() <= ProfileSchedule::kMostPoints + 8);
  int near_the_kink = 0;
  for (std::size_t i = coarse_points(1); i < record.points.size(); ++i)
    near_the_kink += record.points[i].shape.batch > 4;
  CHECK(near_the_kink * 2 > static_cast<int>(record.points.size() - coarse_points(1)));
  ProfileRecord coarse = record;
  coarse.points.resize(coarse_points(1));
  const ProfileSchedule before({side(1, {PairClass::kSameNode})}, coarse);
  CHECK(2 * schedule.fit_error(1, PairClass::kSameNode).p90 <
        before.fit_error(1, PairClass::kSameNode).p90);
}

TEST_CASE("noise is not chased") {
  ProfileRecord record;
  record.budget = 10000;
  ProfileSchedule schedule({side(1, {PairClass::kSameNode})}, record);
  Machine machine{.noise = 0.2};
  machine.drive(schedule, record);
  CHECK(schedule.repeat_noise(1, PairClass::kSameNode).p90 > 50000);
  CHECK(record.points.size() < 2 * coarse_points(1));
}

TEST_CASE("the budget ends the measuring, but never before noise is known") {
  for (const double budget : {1e-6, 2.0, 4.0}) {
    ProfileRecord record;
    record.budget = budget;
    ProfileSchedule schedule({side(1, {PairClass::kSameNode}), side(4, {PairClass::kSameNode})},
                             record);
    Machine machine{.noise = 0.01, .kink = 0.3};
    machine.drive(schedule, record);
    CHECK(least_visits(record) >= ProfileSchedule::kLeastVisits);
    if (budget < 1)
      CHECK(machine.visits.size() == ProfileSchedule::kLeastVisits * record.points.size());
    else
      CHECK(record.seconds_spent < budget + 1.0);
  }
}

TEST_CASE("the measured share is that of the planned time, and all where nothing is left") {
  const std::vector<ProfileSide> sides{side(1, {PairClass::kSameNode})};
  ProfileRecord exact;
  exact.budget = 1000;
  ProfileSchedule whole(sides, exact);
  CHECK(whole.measured_percent() == 1);
  Machine().drive(whole, exact);
  REQUIRE(exact.seconds_spent < default_budget(exact.first_round));
  CHECK(whole.measured_percent() == 100);

  ProfileRecord cut;  // with points wanted that there was no time for
  cut.budget = 1;
  ProfileSchedule half(sides, cut);
  Machine{.kink = 0.4}.drive(half, cut);
  CHECK(cut.first_round > 0);
  CHECK(half.measured_percent() ==
        static_cast<int>(100 * cut.seconds_spent / default_budget(cut.first_round)));
  cut.seconds_spent = default_budget(cut.first_round);  // as long as it would be without a budget
  CHECK(half.measured_percent() == 100);
}

TEST_CASE("a profile is complete where the same command would measure no more") {
  const std::vector<ProfileSide> sides{side(1, {PairClass::kSameNode})};
  ProfileRecord record;
  ProfileSchedule schedule(sides, record);
  Machine machine{.kink = 0.4};
  machine.drive(schedule, record, 2 * static_cast<int>(coarse_points(1)));
  // Too late for points that refine, but not for all visits of those there are.
  record.seconds_spent = 0.7 * default_budget(record.first_round);
  CHECK(schedule.measured_percent() == 70);
  machine.drive(schedule, record);
  REQUIRE(record.points.size() == coarse_points(1));
  REQUIRE(least_visits(record) == ProfileSchedule::kFullVisits);
  REQUIRE(record.seconds_spent < default_budget(record.first_round));
  CHECK(schedule.measured_percent() == 100);
  ProfileRecord again = record;
  again.budget = 0;
  CHECK(!ProfileSchedule(sides, again).next());
}

TEST_CASE("without a budget one is chosen when every point has been seen once") {
  ProfileRecord record;
  ProfileSchedule schedule({side(1, {PairClass::kSameNode})}, record);
  Machine machine{.noise = 0.01};
  machine.drive(schedule, record, static_cast<int>(coarse_points(1)));
  CHECK(record.budget == 0);
  machine.drive(schedule, record, 1);
  CHECK(record.budget == default_budget(0));
  CHECK(default_budget(1) < 60);
  CHECK(default_budget(1e9) <= 300);
}

TEST_CASE("degrees take turns, and both classes of a degree gain from a visit") {
  ProfileRecord record;
  record.budget = 1e-6;
  ProfileSchedule schedule(
      {side(1, {PairClass::kSameNode}), side(2, {PairClass::kSameNode, PairClass::kOtherNode})},
      record);
  Machine machine;
  machine.drive(schedule, record);
  REQUIRE(machine.visits.size() == 2 * 2 * coarse_points(1));
  for (std::size_t i = 0; i < machine.visits.size(); ++i)
    CHECK(machine.visits[i].degree == 1 + static_cast<int>(i % 2));
  CHECK(record.points.size() == 3 * coarse_points(1));
  for (const auto& p : record.points) CHECK(p.visits.size() == 2);
}

TEST_CASE("a schedule that takes over a record goes on where the other stopped") {
  Machine whole{.kink = 0.4}, halves{.kink = 0.4};
  ProfileRecord a, b;
  a.budget = b.budget = 3;
  const std::vector<ProfileSide> sides{side(1, {PairClass::kSameNode})};
  ProfileSchedule schedule(sides, a);
  whole.drive(schedule, a);
  for (int i = 0; i < 10000; ++i) {
    ProfileSchedule next(sides, b);
    const std::size_t before = halves.visits.size();
    halves.drive(next, b, 7);
    if (halves.visits.size() == before) break;
  }
  CHECK(a.points == b.points);
  REQUIRE(whole.visits.size() == halves.visits.size());
}

TEST_CASE("short steps are timed in long rows, long ones in short rows") {
  ProfileRecord record;
  record.budget = 1e-6;
  ProfileSchedule schedule({side(1, {PairClass::kSameNode})}, record);
  Machine machine;
  machine.drive(schedule, record);
  for (const ProfileVisit& v : machine.visits) CHECK(v.warm_up + v.steps <= StepProbe::kLongestRun);
  const auto& second = machine.visits.back();
  CHECK(second.steps >= 2);
}
