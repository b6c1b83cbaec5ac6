// SPDX-License-Identifier: Apache-2.0
#include "planner/RegretBudget.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "base/Error.hpp"

using namespace taper;

TEST_CASE("spending stays within the share of the time, and what was saved") {
  RegretBudget budget(10'000, 5'000);
  CHECK_FALSE(budget.affords(11, 1000));
  CHECK(budget.affords(10, 1000));
  budget.spend(10);
  CHECK_FALSE(budget.affords(1, 1000));
  CHECK(budget.affords(10, 2000));
  // A generation that took 2000 and saved 1000, all costs included.
  budget.finish(2000, 2000, 3000, std::vector<std::int64_t>{3000, 4000}, true);
  CHECK(budget.best_static() == 0);
  CHECK(budget.loss_ns() == -1000);
  CHECK(budget.affords(1020, 0));
  CHECK_FALSE(budget.affords(1021, 0));
  // One that lost more than was saved before.
  budget.finish(2000, 4000, 2000, std::vector<std::int64_t>{3000, 4000}, true);
  CHECK(budget.affords(40, 0));
  CHECK_FALSE(budget.affords(41, 0));
}

TEST_CASE("too large a loss ends switching until it has faded") {
  RegretBudget budget(10'000, 5'000);
  const std::vector<std::int64_t> fixed{2'000'000, 1'000'000};
  budget.finish(0, 1'100'000, 1'000'000, fixed, false);  // before any length was known
  CHECK_FALSE(budget.exhausted());
  // 0.5 % of eight generations, though only one is known.
  budget.finish(0, 1'035'000, 1'000'000, fixed, true);
  CHECK_FALSE(budget.exhausted());
  budget.finish(0, 1'020'000, 1'000'000, fixed, true);
  CHECK(budget.exhausted());
  CHECK_FALSE(budget.prefers_static());
  int generations = 0;
  while (budget.exhausted() && ++generations < 100)
    budget.finish(0, 1'000'000, 1'000'000, fixed, true);
  CHECK(generations == 7);  // each takes an eighth of the loss; half of 0.5 % is the way out
}

TEST_CASE("bad first layouts end their choice, not switching") {
  RegretBudget budget(10'000, 5'000);
  const std::vector<std::int64_t> fixed{1'100'000, 1'000'000};
  budget.finish(0, 1'050'000, 1'100'000, fixed, true);  // a switch made good a half of the loss
  CHECK_FALSE(budget.exhausted());
  CHECK(budget.prefers_static());
  CHECK(budget.best_static() == 1);
  for (int i = 0; i < 30; ++i) budget.finish(0, 1'000'000, 1'000'000, fixed, true);
  CHECK_FALSE(budget.prefers_static());
}

TEST_CASE("a budget is saved and loaded") {
  RegretBudget budget(10'000, 5'000), copy(10'000, 5'000);
  budget.spend(7);
  budget.finish(500, 400, 350, std::vector<std::int64_t>{500, 300}, true);
  copy.load(budget.save());
  CHECK(copy.save() == budget.save());
  CHECK(copy.exhausted());
  CHECK_THROWS_AS(copy.load(std::string(8, 0)), Error);
}
