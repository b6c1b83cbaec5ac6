// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardFigures.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <map>

using namespace taper;

namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

std::vector<SampleSummary> samples(const std::vector<std::vector<float>>& rewards) {
  std::vector<SampleSummary> list;
  for (const auto& r : rewards) list.emplace_back().rewards = r;
  return list;
}

std::map<std::string, double> values(const RewardFigures& figures) {
  const MetricValues list = figures.metrics("x");
  return {list.begin(), list.end()};
}

}  // namespace

TEST_CASE("figures add up over the rounds of an iteration, whatever they have in common") {
  RewardFigures figures({"right", "judge", "judge/style"});
  figures.add(samples({{1, -0.5f, 0.25f}, {0, kNone, kNone}}));
  figures.add("judge", {2, 1, 1, 3.0, 4.0});
  figures.add(samples({{1, -1.5f, 0.75f}, {1, -1.0f, 0.5f}}));
  figures.add("judge", {0, 1, 0, 1.5, 1.0});
  const auto v = values(figures);
  CHECK(v.at("x/right/mean") == 0.75);
  CHECK(v.at("x/right/min") == 0.0);
  CHECK(v.at("x/judge/mean") == -1.0);
  CHECK(v.at("x/judge/max") == -0.5);
  CHECK(v.at("x/judge/min") == -1.5);
  CHECK(v.at("x/judge/style/mean") == 0.5);
  CHECK(v.at("x/judge/failed") == 1);
  CHECK(v.at("x/judge/errors") == 2);
  CHECK(v.at("x/judge/timeouts") == 2);
  CHECK(v.at("x/judge/restarts") == 1);
  CHECK(v.at("x/judge/latency_s/mean") == 1.5);
  CHECK(v.at("x/judge/latency_s/max") == 4.0);
  CHECK(!v.contains("x/right/failed"));  // rules cannot fail
  CHECK(!v.contains("x/judge/style/failed"));
  figures.begin();
  CHECK(values(figures).empty());
}

TEST_CASE("a command whose timeout adapts says how many answers that cut, others do not") {
  RewardFigures figures({"judge", "plain"});
  for (int round = 0; round < 2; ++round) {
    figures.add(samples({{1, 1}}));
    figures.add("judge", {0, 2, 2, 1.0, 1.0, AdaptedAnswers{1, 3}});
    figures.add("plain", {0, 2, 2, 1.0, 1.0});
  }
  const auto v = values(figures);
  CHECK(v.at("x/judge/timeouts") == 4);
  CHECK(v.at("x/judge/cut_short") == 2);
  CHECK(v.at("x/judge/anchor_hits") == 6);
  CHECK(!v.contains("x/plain/cut_short"));
  CHECK(!v.contains("x/plain/anchor_hits"));
}

TEST_CASE("what no response has is not there, nor what the score says alone") {
  RewardFigures missing({"right", "judge"}), alone({"score"});
  missing.add(samples({{1, kNone}}));
  missing.add("judge", {1, 0, 0, 0.0, 2.0});
  CHECK(!values(missing).contains("x/judge/mean"));
  CHECK(!values(missing).contains("x/judge/latency_s/mean"));
  CHECK(values(missing).at("x/judge/failed") == 1);
  alone.add(samples({{1}}));
  CHECK(values(alone).empty());
}
