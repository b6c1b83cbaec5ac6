// SPDX-License-Identifier: Apache-2.0
//
// Leaders that agree without waiting for each other. Whole generations with changes are in
// Generator.test.cpp; here nothing moves.
#include "rollout/Consultation.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "engine/EngineRun.hpp"
#include "support/ScriptedPlanner.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Tokens of responses that outlast several consultations, also if ranks share cores.
constexpr int kLong = 400;

// Counts what it is told of changes.
class ToldPlanner : public ScriptedPlanner {
 public:
  using ScriptedPlanner::ScriptedPlanner;
  void switched(const Plan&, std::int64_t ns) override {
    ++switches;
    measured_ns = ns;
  }
  int switches = 0;
  std::int64_t measured_ns = 0;
};

// One engine per replica of a degree, consulting at every step.
struct Fixture : TestRanks {
  explicit Fixture(int tp, const std::vector<ScriptedChange>& script = {})
      : model("llama_b", ranks.groups.tp_group(tp)),
        test(model, roomy(model)),
        layout(Layout::uniform(tp, ranks.chain)),
        planner(layout, script),
        consult(ranks, planner, {0, 1, 1.0}) {
    test.engine.begin({}, {});
    consult.begin(layout);
  }

  // The plan that the leaders would make at a consultation: all as it is, but for the sequences.
  static ScriptedChange repack_at(std::int64_t consultation, int tp, const Ranks& ranks) {
    return {
        consultation, {Layout::uniform(tp, ranks.chain), PlanStart::kNow, 0, Repack::kYes}, false};
  }

  void submit(int requests, int tokens) {
    for (const Request& r : mixed_requests(model, requests, tokens)) test.engine.submit(r);
  }

  // Steps until all work is done or stopped; changes are closed as `applied`. Returns them.
  std::vector<LayoutChange> run(Applied applied = Applied::kNo) {
    std::vector<LayoutChange> changes;
    while (!consult.all_work_done() && !consult.stopped()) {
      consult.observe(test.engine.step(consult.control_word()), test.engine);
      if (const auto agreed = consult.agree()) {
        changes.push_back(agreed->change);
        CHECK(agreed->snapshot.replicas.size() == static_cast<std::size_t>(layout.replicas()));
        consult.close(*agreed, applied);
      }
    }
    return changes;
  }

  GoldenModel model;
  TestEngine test;
  Layout layout;
  ToldPlanner planner;
  Consultation consult;
};

std::vector<int> degrees() {
  return world_size() == 1 ? std::vector<int>{1} : std::vector<int>{1, world_size()};
}

}  // namespace

TEST_CASE("bad periods are refused") {
  const TestRanks world;
  ScriptedPlanner planner(Layout::uniform(1, world.ranks.chain));
  for (const ConsultationOptions& bad : {ConsultationOptions{-1, 1, 0.1}, {0, 0, 0.1}, {0, 1, 0.0}})
    CHECK_THROWS_AS(Consultation(world.ranks, planner, bad), Error);
}

TEST_CASE("replicas without work find out that all is done, and decide nothing") {
  for (const int tp : degrees()) {
    Fixture f(tp);
    CHECK(f.run().empty());
    CHECK(f.consult.all_work_done());
    CHECK_FALSE(f.consult.stopped());
    CHECK(f.consult.records().empty());
  }
}

TEST_CASE("the end comes when the last replica has no sequence left") {
  for (const int tp : degrees()) {
    Fixture f(tp);
    if (f.layout.replica_of(f.ranks.rank()) == 0) f.submit(3, 20);
    f.run();
    CHECK(f.consult.all_work_done());
    CHECK(f.test.engine.idle());
    CHECK(f.consult.records().empty() == (f.ranks.rank() != 0));
    std::int64_t number = 0;
    for (const ConsultationRecord& r : f.consult.records()) {
      CHECK(r.snapshot.consultation == number++);
      CHECK(r.snapshot.alive() > 0);
      CHECK_FALSE(r.decision.act);
    }
  }
}

TEST_CASE("one leader that wants to stop stops all before their work is done") {
  for (const int tp : degrees()) {
    Fixture f(tp);
    f.submit(4, kLong);
    if (f.ranks.rank() == 0) f.consult.request_stop();
    CHECK(f.run().empty());
    CHECK(f.consult.stopped());
    CHECK_FALSE(f.consult.all_work_done());
    CHECK_FALSE(f.test.engine.idle());
    // And the next generation is whole.
    drain(f.test.engine);
    f.consult.begin(f.layout);
    f.run();
    CHECK(f.consult.all_work_done());
  }
}

TEST_CASE("all ranks hear the same plan, and each closed epoch leads to the next") {
  const TestRanks world;
  for (const int tp : degrees())
    for (const bool done : {false, true}) {
      Fixture f(tp,
                {Fixture::repack_at(0, tp, world.ranks), Fixture::repack_at(2, tp, world.ranks)});
      f.submit(4, kLong);
      const auto plans = f.run(done ? Applied::kYes : Applied::kNo);
      REQUIRE(plans.size() == 2);
      std::vector<std::uint64_t> mine{plans[0].hash, plans[1].hash}, all(2 * world_size());
      all_gather(f.ranks.world(), all, mine);
      for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == mine[i % 2]);
      CHECK(mine[0] != mine[1]);
      CHECK(f.consult.layout() == f.layout);
      // Leaders learn at the next consultation how long a change took, if it was done.
      const bool leads = f.ranks.rank() % tp == 0;
      CHECK(f.planner.switches == (done && leads ? 2 : 0));
      if (done && leads) CHECK(f.planner.measured_ns > 0);
      if (f.ranks.rank() != 0) continue;
      const auto& records = f.consult.records();
      CHECK(records.size() > 3);
      for (std::size_t i = 0; i < std::min<std::size_t>(4, records.size()); ++i) {
        CHECK(records[i].decision.act == (i % 2 == 0));
        CHECK(records[i].snapshot.epoch == static_cast<std::int64_t>((i + 1) / 2));
      }
    }
}
