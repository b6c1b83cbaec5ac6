// SPDX-License-Identifier: Apache-2.0
#include "planner/Pricer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <numeric>
#include <set>

#include "planner/Tail.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr int kSequences = 20;
constexpr int kScenarios = 8;

// Plans for a tail in four replicas of one rank.
struct Pricing : Tail {
  Pricer pricer{scenarios, sequences(kSequences), *uniform[0], cost, lengths,
                32,        StepPhase::kBegin};
  PricedPlan stay{stay_in(uniform[0]->layout)};

  // One replica of four ranks as soon as at most `alive` sequences are left.
  PricedPlan merge(int alive) const {
    return PricedPlan({uniform[2]->layout, PlanStart::kBelow, alive},
                      {{alive, uniform[2], Repack::kNo}});
  }
  // Mean over the scenarios of the time when `count` sequences have ended.
  std::int64_t mean_end(int count) {
    std::int64_t sum = 0;
    for (int k = 0; k < kScenarios; ++k)
      sum += pricer.played(static_cast<std::size_t>(k)).ends()[static_cast<std::size_t>(count) - 1];
    return sum / kScenarios;
  }
};

// Equal but for the rounding of each scenario's share.
bool nearly_equal(std::int64_t a, std::int64_t b) {
  return std::abs(a - b) <= kScenarios;
}

}  // namespace

TEST_CASE_METHOD(Pricing, "the price of staying is the time to the last sequence, by scenario") {
  pricer.price(stay, kScenarios);
  REQUIRE(stay.rest_ns.size() == kScenarios);
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < kScenarios; ++k) {
    PlayedGeneration run = pricer.played(k);
    CHECK(run.alive() == kSequences);
    CHECK(stay.rest_ns[k] == run.finish());
    sum += stay.rest_ns[k];
  }
  CHECK(stay.mean() == sum / kScenarios);
  CHECK(std::set<std::int64_t>(stay.rest_ns.begin(), stay.rest_ns.end()).size() > 1);
  CHECK(stay.cost_ns == 0);
  CHECK(nearly_equal(stay.next_ns, mean_end(kSequences / 10)));
}

TEST_CASE_METHOD(Pricing, "a plan that switches later has the price of a run that switches then") {
  PricedPlan later = merge(5);
  pricer.price(later, kScenarios);
  const std::vector<SwitchRule> rules = later.rules;
  for (std::size_t k = 0; k < kScenarios; ++k) {
    PlayedGeneration run = pricer.played(k);
    CHECK(later.rest_ns[k] == run.finish(rules));
    CHECK(run.snapshot(0).epoch == 1);
  }
  CHECK(later.cost_ns == 0);  // it is not paid now
  CHECK(nearly_equal(later.next_ns, mean_end(kSequences - 5)));
}

TEST_CASE_METHOD(Pricing, "a switch that happens now has its cost, and nothing to wait for") {
  PricedPlan now = merge(kSequences);
  pricer.price(now, kScenarios);
  CHECK(now.next_ns == 0);
  CHECK(now.cost_ns > 0);
  CHECK(now.cost_ns == pricer.played(0).plan_change(*uniform[2], Repack::kNo).cost.total());
  for (std::size_t k = 0; k < kScenarios; ++k) {
    PlayedGeneration run = pricer.played(k);
    run.switch_to(*uniform[2], Repack::kNo);
    CHECK(now.rest_ns[k] == run.finish());
  }
}

TEST_CASE_METHOD(Pricing,
                 "a switch now waits for the last of the ranks that are anywhere in a step") {
  constexpr int kMany = 48;
  Pricer within(scenarios, sequences(kSequences), *uniform[0], cost, lengths, 32,
                StepPhase::kAnywhere);
  PricedPlan now = merge(kSequences);
  within.price(now, kMany);
  CHECK(now.cost_ns == pricer.played(0).plan_change(*uniform[2], Repack::kNo).cost.total());
  std::vector<std::int64_t> step_ns;
  for (const PlayedReplica& r : pricer.played(0).replicas()) step_ns.push_back(r.step_ns());
  std::vector<std::set<std::int64_t>> places(4);
  std::vector<std::int64_t> sums(4);
  std::int64_t waiting = 0;
  for (std::size_t k = 0; k < kMany; ++k) {
    PlayedGeneration run = within.played(k);
    std::int64_t last = 0, sum = 0;
    for (std::size_t r = 0; r < 4; ++r) {
      const std::int64_t left = run.replicas()[r].clock();
      CHECK(left <= step_ns[r]);
      places[r].insert(left);
      sums[r] += left;
      last = std::max(last, left);
      sum += left;
    }
    waiting += last - sum / 4;
    run.switch_to(*uniform[2], Repack::kNo);
    CHECK(run.clock() == last + now.cost_ns);
    CHECK(now.rest_ns[k] == run.finish());
  }
  // All over the step, and half through it in the mean.
  for (std::size_t r = 0; r < 4; ++r) {
    CHECK(places[r].size() == kMany);
    CHECK(sums[r] > kMany * step_ns[r] / 3);
    CHECK(sums[r] < kMany * step_ns[r] * 2 / 3);
  }
  CHECK(scenarios.arrival_ns(step_ns, std::vector<int>(4, 1), kMany) == waiting / kMany);
  CHECK(scenarios.arrival_ns(std::vector<std::int64_t>{1000}, std::vector<int>{4}, kMany) == 0);
  // A large group counts for each of its ranks: here it is nearly always the last.
  const std::vector<std::int64_t> slow{1'000'000, 1};
  CHECK(scenarios.arrival_ns(slow, std::vector<int>{3, 1}, kMany) <
        scenarios.arrival_ns(slow, std::vector<int>{1, 3}, kMany) / 2);
}

TEST_CASE_METHOD(Pricing, "one scenario at a time gives the price of all at once") {
  PricedPlan whole = merge(7), parts = merge(7);
  pricer.price(whole, kScenarios);
  for (int k = 0; k < kScenarios; ++k) {
    pricer.extend(parts);
    pricer.extend(stay);  // between the others
  }
  pricer.finish(parts);
  CHECK(parts.rest_ns == whole.rest_ns);
  CHECK(parts.next_ns == whole.next_ns);
  pricer.price(whole, 2);  // it has more already
  CHECK(whole.rest_ns == parts.rest_ns);
}

TEST_CASE("a range has the mean, a low quantile and its mirror") {
  std::vector<std::int64_t> values(21);
  std::iota(values.rbegin(), values.rend(), 100);  // 100 to 120, descending
  values.front() += 21;
  const PriceRange range = range_of(values);
  CHECK(range.mean == 111);
  CHECK(range.low == 102);
  CHECK(range.high == 118);
  const PriceRange one = range_of({-5});
  CHECK(one.mean == -5);
  CHECK(one.low == -5);
  CHECK(one.high == -5);
  CHECK(difference({5, 1, 9}, {2, 4, 9}) == std::vector<std::int64_t>{3, -3, 0});
}

TEST_CASE("savings are worth the risk if they are so many times the losses") {
  CHECK(is_worth_risk({7, 0, 13}, 10));
  CHECK(is_worth_risk({70, -10, 30}, 10));
  CHECK_FALSE(is_worth_risk({70, -10, 29}, 10));
  CHECK(is_worth_risk({70, -10, 29}, 9));
  CHECK_FALSE(is_worth_risk({0, 0}, 10));
  CHECK_FALSE(is_worth_risk({-1, 0}, 1));
}
