// SPDX-License-Identifier: Apache-2.0
#include "planner/PlanSearch.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "planner/Tail.hpp"

using namespace taper;
using namespace taper::test;

namespace {

struct Searching : Tail {
  PlanSearch search(int count) {
    PlanSetting setting{
        uniform,   chain,
        degrees,   steps,
        cost,      lengths,
        scenarios, [this](const Layout& layout) -> const LayoutShape& { return shape(layout); }};
    return {setting, *uniform.front(), sequences(count), 32, StepPhase::kAnywhere};
  }
};

}  // namespace

TEST_CASE_METHOD(Searching, "a search spread over many calls finds what one call finds") {
  PlanSearch whole = search(12), parts = search(12);
  REQUIRE(whole.advance(std::numeric_limits<std::int64_t>::max()));
  int calls = 1;
  while (!parts.advance(1)) ++calls;
  CHECK(calls > 50);
  REQUIRE(parts.plans().size() == whole.plans().size());
  REQUIRE(whole.plans().size() > 1);
  for (std::size_t i = 0; i < whole.plans().size(); ++i) {
    CHECK(parts.plans()[i].plan == whole.plans()[i].plan);
    CHECK(parts.plans()[i].rest_ns == whole.plans()[i].rest_ns);
    CHECK(parts.plans()[i].next_ns == whole.plans()[i].next_ns);
  }
  CHECK(parts.advance(1));  // done is done
}

TEST_CASE_METHOD(Searching, "staying comes first, and each plan is there once") {
  PlanSearch s = search(12);
  s.advance(std::numeric_limits<std::int64_t>::max());
  CHECK(s.plans().front().rules.empty());
  for (std::size_t i = 0; i < s.plans().size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(s.plans()[i].plan == s.plans()[j].plan);
}

TEST_CASE_METHOD(Searching,
                 "a comparison has staying and the switch, with the price of the search") {
  PlanSearch s = search(12);
  s.advance(std::numeric_limits<std::int64_t>::max());
  const auto compared = search(12).compare(*uniform[1], Repack::kNo);
  REQUIRE(compared.size() == 2);
  CHECK(compared[0].rest_ns == s.plans()[0].rest_ns);
  CHECK(compared[1].plan.layout == uniform[1]->layout);
  CHECK(compared[1].rest_ns.size() == 32);
}
