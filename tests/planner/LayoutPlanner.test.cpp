// SPDX-License-Identifier: Apache-2.0
#include "planner/LayoutPlanner.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/ScriptedPlanner.hpp"

using namespace taper;
using namespace taper::test;

namespace {

const DivisorChain kChain({1, 2});

Snapshot snapshot(const std::string& layout, std::int64_t consultation) {
  const Layout l = parse_layout(layout, kChain);
  return {l, std::vector<ReplicaSnapshot>(l.groups().size()), 0, consultation, 0};
}

}  // namespace

TEST_CASE("a static planner stays in its layout, knows no times and has nothing to save") {
  StaticPlanner planner(parse_layout("1x2", kChain));
  CHECK(planner.begin({}) == parse_layout("1x2", kChain));
  const Decision decision = planner.decide(snapshot("1x2", 1));
  CHECK_FALSE(decision.act);
  CHECK(decision.plan.layout == parse_layout("1x2", kChain));
  CHECK(planner.step_ns({0, 1}, {8, 8, 0, 100}) == 0);
  CHECK(planner.scale() == 0);
  CHECK(planner.save().empty());
}

TEST_CASE("a script acts at its consultations and nowhere else") {
  const Plan merge{parse_layout("2x1", kChain), PlanStart::kNow, 0, Repack::kNo};
  ScriptedPlanner planner(parse_layout("1x2", kChain), {{3, merge, true}});
  CHECK(planner.begin({}) == parse_layout("1x2", kChain));
  CHECK_FALSE(planner.decide(snapshot("1x2", 2)).act);
  const Decision decision = planner.decide(snapshot("1x2", 3));
  CHECK(decision.act);
  CHECK(decision.plan == merge);
  CHECK(decision.hash != planner.decide(snapshot("1x2", 2)).hash);
  CHECK(decision.hash == planner.decide(snapshot("1x2", 3)).hash);

  std::vector<SequenceState> sequences(4);
  for (int i = 0; i < 4; ++i) sequences[i] = {i, i / 2, 10, 5, 5, 20};
  const Confirmation c = planner.confirm(merge, snapshot("1x2", 3), sequences);
  REQUIRE(c.act);
  REQUIRE(c.moves.size() == 4);
  for (int i = 0; i < 4; ++i) {
    CHECK(c.moves[i].id == i);
    CHECK(c.moves[i].from == i / 2);
    CHECK(c.moves[i].to == 0);
    CHECK(c.moves[i].kv == (i % 2 == 1 ? KvAction::kRecompute : KvAction::kMove));
  }
}
