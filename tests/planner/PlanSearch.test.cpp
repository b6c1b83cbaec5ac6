// SPDX-License-Identifier: Apache-2.0
#include "planner/PlanSearch.hpp"

#include <catch2/catch_test_macros.hpp>
#include <deque>
#include <limits>

#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

// The tail of a generation on four ranks: few sequences, most of them at the first rank.
struct Tail {
  LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2, 4});
  StepModel steps{profile};
  SwitchCost cost{profile};
  DivisorChain chain = DivisorChain::of(4);
  std::deque<LayoutShape> shapes;
  std::vector<const LayoutShape*> uniform;
  std::vector<int> degrees{1, 2, 4};
  LengthModel lengths{3};
  Scenarios scenarios{7, 32};

  Tail() {
    for (const int tp : degrees) uniform.push_back(&shape(Layout::uniform(tp, chain)));
    lengths.begin(1024);
    std::vector<int> past;
    for (int i = 0; i < 200; ++i) past.push_back(20 + i * i % 1000);
    lengths.learn(past, {});
    scenarios.begin(1, 0);
  }

  const LayoutShape& shape(const Layout& layout) {
    for (const LayoutShape& s : shapes)
      if (s.layout == layout) return s;
    return shapes.emplace_back(resolve(layout, steps));
  }

  PlanSearch search(int sequences) {
    std::vector<SequenceState> list;
    for (int i = 0; i < sequences; ++i)
      list.push_back({i, i % 3 == 0 ? i % 4 : 0, 400 + i, 100, 300 + i, 1024});
    std::stable_sort(list.begin(), list.end(), [](const SequenceState& a, const SequenceState& b) {
      return a.replica < b.replica;
    });
    PlanSetting setting{
        uniform,   chain,
        degrees,   steps,
        cost,      lengths,
        scenarios, [this](const Layout& layout) -> const LayoutShape& { return shape(layout); }};
    return {setting, *uniform.front(), list, 32};
  }
};

}  // namespace

TEST_CASE_METHOD(Tail, "a search spread over many calls finds what one call finds") {
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

TEST_CASE_METHOD(Tail, "staying comes first, and each plan is there once") {
  PlanSearch s = search(12);
  s.advance(std::numeric_limits<std::int64_t>::max());
  CHECK(s.plans().front().rules.empty());
  for (std::size_t i = 0; i < s.plans().size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(s.plans()[i].plan == s.plans()[j].plan);
}

TEST_CASE_METHOD(Tail, "a comparison has staying and the switch, with the price of the search") {
  PlanSearch s = search(12);
  s.advance(std::numeric_limits<std::int64_t>::max());
  const auto compared = search(12).compare(*uniform[1], false);
  REQUIRE(compared.size() == 2);
  CHECK(compared[0].rest_ns == s.plans()[0].rest_ns);
  CHECK(compared[1].plan.layout == uniform[1]->layout);
  CHECK(compared[1].rest_ns.size() == 32);
}
