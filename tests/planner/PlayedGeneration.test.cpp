// SPDX-License-Identifier: Apache-2.0
#include "planner/PlayedGeneration.hpp"

#include <catch2/catch_test_macros.hpp>
#include <deque>

#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

// Every step takes 1000 ns at TP 1 and 600 ns at TP 2, whatever is in it; prompts are free.
LatencyProfile flat() {
  LatencyProfile p;
  p.ranks = p.ranks_per_node = 4;
  for (const auto& [tp, ns] : {std::pair{1, 1000}, {2, 600}, {4, 400}})
    for (const int b : {1, 64})
      p.steps.push_back({tp, PairClass::kSameNode, b, b, b * 10, ns, 0, 1});
  p.rendezvous = {{4, 50}};
  return p;
}

struct Fixture {
  LatencyProfile profile = flat();
  StepModel steps{profile};
  SwitchCost cost{profile};
  DivisorChain chain = DivisorChain::of(4);
  std::deque<LayoutShape> shapes;

  const LayoutShape& shape(const std::string& text) {
    return shapes.emplace_back(resolve(parse_layout(text, chain), steps));
  }
  PlayedGeneration run(const std::string& text, const std::vector<std::vector<int>>& remaining) {
    PlayedGeneration run(shape(text), cost, 64);
    std::int64_t id = 0;
    for (std::size_t r = 0; r < remaining.size(); ++r)
      for (const int n : remaining[r]) run.add(static_cast<int>(r), {id++, 10, 5, 5, n, 0});
    run.start();
    return run;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a replica takes as many steps as its longest sequence") {
  PlayedGeneration run = this->run("1x4", {{3, 7}, {2}, {}, {5, 5, 5}});
  CHECK(run.alive() == 6);
  CHECK(PlayedGeneration(run).finish() == 7000);
  run.advance_to(2, run.ends());
  CHECK(run.alive() == 1);  // three end together
  CHECK(run.clock() == 5000);
  CHECK(run.replicas()[1].clock() == 2000);
  CHECK(run.finish() == 7000);
}

TEST_CASE_METHOD(Fixture, "the way of advancing does not matter") {
  PlayedGeneration steps = run("2x2", {{13, 7, 29}, {2, 31}});
  const auto whole = PlayedGeneration(steps).finish();
  for (std::int64_t t = 100; steps.alive() > 0; t += 777) steps.advance(t);
  CHECK(steps.clock() == whole);
}

TEST_CASE_METHOD(Fixture, "a switch makes its groups wait for each other and pay") {
  PlayedGeneration run = this->run("1x4", {{10}, {}, {}, {4}});
  run.advance(2500);  // third step of both
  CHECK(run.clock() == 3000);
  run.switch_to(shape("2x2"), Repack::kNo);
  CHECK(run.snapshot(0).epoch == 1);
  CHECK(run.finish() == 3000 + 50 + 7 * 600);
}

TEST_CASE_METHOD(Fixture, "groups that a plan leaves alone go on") {
  PlayedGeneration run = this->run("1x4", {{10}, {1}, {6}, {4}});
  run.advance(3000);
  run.switch_to(shape("2+1+1"), Repack::kNo);
  CHECK(run.replicas()[0].clock() == 3050);
  CHECK(run.replicas()[1].clock() == 3000);
  CHECK(run.finish() == 3050 + 7 * 600);
}

TEST_CASE_METHOD(Fixture, "rules switch as sequences leave") {
  const std::vector<SwitchRule> rules{{2, &shape("2x2"), Repack::kNo},
                                      {1, &shape("4x1"), Repack::kNo}};
  PlayedGeneration run = this->run("1x4", {{10}, {1}, {6}, {2}});
  // 2 steps of 1000, then 4 of 600 until one is left, then 4 of 400.
  CHECK(run.finish(rules) == 2000 + 50 + 4 * 600 + 50 + 4 * 400);
}

TEST_CASE_METHOD(Fixture, "sequences wait for slots, and snapshots see it") {
  PlayedGeneration run(shape("2x2"), cost, 1);  // a slot per rank, two per replica
  for (int i = 0; i < 3; ++i) run.add(0, {i, 0, 8, 0, 5, 8});
  run.start();
  run.advance(600);
  const Snapshot s = run.snapshot(9);
  CHECK(s.consultation == 9);
  CHECK(s.replicas[0].running() == 2);
  CHECK(s.replicas[0].waiting == 1);
  CHECK(s.replicas[0].response == 2);
  CHECK(s.replicas[0].context == 2 * 9);
  CHECK(s.alive() == 3);
  CHECK(run.finish() == 2 * 5 * 600);
  CHECK(run.snapshot(10).finished() == 3);
}

TEST_CASE_METHOD(Fixture, "what ended before a switch stays counted") {
  PlayedGeneration run = this->run("1x4", {{1, 9}, {1}, {1}, {5}});
  run.advance(1000);
  run.switch_to(shape("4x1"), Repack::kNo);
  CHECK(run.snapshot(0).finished() == 3);
  CHECK(run.states().size() == 2);
}

TEST_CASE_METHOD(Fixture,
                 "snapshots of more than their fields hold show the most, and do not wrap") {
  constexpr std::int32_t kRunning = 70'000, kWaiting = 66'000, kContext = 100'000;
  PlayedGeneration run(shape("4x1"), cost, kRunning / 4);
  for (int i = 0; i < kRunning; ++i) run.add(0, {i, kContext, 10, kContext - 10, 5, 0});
  for (int i = 0; i < kWaiting; ++i) run.add(0, {kRunning + i, 0, 10, 0, 5, 10});
  run.start();
  const ReplicaSnapshot s = run.snapshot(0).replicas.front();
  CHECK(s.lengths[length_bucket(kContext - 10)] == 65535);
  CHECK(s.waiting == 65535);
  CHECK(s.context == 4294967295u);
  CHECK(s.response == 4294967295u);
  CHECK(s.longest == kContext);
  CHECK(s.prompts == kRunning);
}
