// SPDX-License-Identifier: Apache-2.0
#include "train/RankSpeeds.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/Random.hpp"

using namespace taper;

namespace {

// Ranks with `rows` each at these seconds.
std::vector<TrainedWork> work(const std::vector<double>& seconds, double rows = 1000.0) {
  std::vector<TrainedWork> list;
  for (const double s : seconds) list.push_back({rows, s});
  return list;
}

}  // namespace

TEST_CASE("a rank's speed is that against the median") {
  RankSpeeds speeds(4, 0.05);
  CHECK(speeds.of_rank(0) == kSpeedOne);
  speeds.note(work({1.0, 1.0, 2.0, 1.0}));
  CHECK(speeds.of_rank(0) == kSpeedOne);
  CHECK(speeds.of_rank(2) == kSpeedOne / 2);
  CHECK(speeds.slow_ranks() == std::vector{2});
  // Of two ranks the faster one is the measure.
  RankSpeeds two(2, 0.05);
  two.note(work({2.0, 1.0}));
  CHECK(two.of_rank(0) == kSpeedOne / 2);
  CHECK(two.of_rank(1) == kSpeedOne);
  // What counts is time per row.
  RankSpeeds rows(2, 0.05);
  rows.note(std::vector<TrainedWork>{{1000.0, 1.0}, {500.0, 1.0}});
  CHECK(rows.of_rank(1) == kSpeedOne / 2);
}

TEST_CASE("noise within the margin moves nothing") {
  RankSpeeds speeds(8, 0.05);
  RandomStream random(3, RandomPurpose::kTest, 0, 0);
  for (int i = 0; i < 200; ++i) {
    std::vector<double> seconds;
    for (int r = 0; r < 8; ++r)
      seconds.push_back(1.0 + 0.06 * (static_cast<double>(random.below(1000)) / 1000.0 - 0.5));
    speeds.note(work(seconds));
    CHECK(speeds.slow_ranks().empty());
    CHECK(speeds.of_replicas({0, {2, 4}}).empty());
  }
}

TEST_CASE("a slow rank is known within three iterations, and forgiven") {
  RankSpeeds speeds(2, 0.05);
  for (int i = 0; i < 10; ++i) speeds.note(work({1.0, 1.0}));
  for (int i = 0; i < 3; ++i) speeds.note(work({1.0, 2.0}));
  CHECK(std::abs(speeds.of_rank(1) - kSpeedOne * 2 / 3) < 20);  // half of the way in time
  for (int i = 0; i < 20; ++i) speeds.note(work({1.0, 2.0}));
  CHECK(std::abs(speeds.of_rank(1) - kSpeedOne / 2) < 8);
  for (int i = 0; i < 30; ++i) speeds.note(work({1.0, 1.0}));
  CHECK(speeds.slow_ranks().empty());
}

TEST_CASE("a rank that gets nothing is tried again") {
  RankSpeeds speeds(2, 0.05);
  speeds.note(work({1.0, 8.0}));
  CHECK(speeds.of_rank(1) == kSpeedOne / 8);
  const std::vector<TrainedWork> starved{{1000.0, 1.0}, {0.0, 0.0}};
  for (int i = 0; i < 3; ++i) speeds.note(starved);
  CHECK(speeds.of_rank(1) > kSpeedOne / 5);
  for (int i = 0; i < 40; ++i) speeds.note(starved);
  CHECK(speeds.of_rank(1) == kSpeedOne);
}

TEST_CASE("a replica is as fast as its slowest rank, wherever the model is") {
  RankSpeeds speeds(6, 0.05);
  speeds.note(work({1.0, 1.0, 1.0, 4.0, 1.0, 1.0}));
  CHECK(speeds.of_replicas({0, {2, 3}}) == ReplicaSpeeds{kSpeedOne, kSpeedOne / 4, kSpeedOne});
  CHECK(speeds.of_replicas({2, {1, 2}}) == ReplicaSpeeds{kSpeedOne, kSpeedOne / 4});
  CHECK(speeds.of_replicas({4, {1, 2}}).empty());
  CHECK(speeds.of_replicas({0, {6, 1}}).empty());
}

TEST_CASE("times that make no sense teach nothing") {
  RankSpeeds speeds(3, 0.05);
  speeds.note(std::vector<TrainedWork>{{0.0, 1.0}, {1000.0, 0.0}, {1000.0, NAN}});
  for (int r = 0; r < 3; ++r) CHECK(speeds.of_rank(r) == kSpeedOne);
  speeds.note(std::vector<TrainedWork>{{1000.0, 1.0}, {1000.0, -1.0}, {1000.0, INFINITY}});
  for (int r = 0; r < 3; ++r) CHECK(speeds.of_rank(r) == kSpeedOne);
  speeds.note(work({1.0, 1.0, 1e9}));
  CHECK(speeds.of_rank(2) == kSpeedOne / 16);
}
