// SPDX-License-Identifier: Apache-2.0
#include "planner/PlayedReplica.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

using namespace taper;

namespace {

// Every step takes 1000 ns, whatever is in it; prompts are free.
StepCurve flat() {
  const std::vector<StepSample> samples{{1, PairClass::kSameNode, 1, 1, 10, 1000, 0, 1},
                                        {1, PairClass::kSameNode, 64, 64, 640, 1000, 0, 1}};
  return StepCurve(samples);
}

// A step takes longer by 1 ns for each position, and by far for prompts.
StepCurve rising() {
  const std::vector<StepSample> samples{{1, PairClass::kSameNode, 1, 1, 10, 1000, 0, 1},
                                        {1, PairClass::kSameNode, 1, 1, 1010, 2000, 0, 1},
                                        {1, PairClass::kSameNode, 64, 1, 64, 50000, 0, 1}};
  return StepCurve(samples);
}

// A sequence that is running, and one whose prompt of 8 tokens is not read yet.
SimulatedSequence running(std::int64_t id, int remaining) {
  return {id, 10, 5, 5, remaining, 0};
}
SimulatedSequence waiting(std::int64_t id, int remaining) {
  return {id, 0, 8, 0, remaining, 8};
}

}  // namespace

TEST_CASE("sequences end after as many steps as they have tokens to come") {
  const StepCurve curve = flat();
  PlayedReplica run(curve, 8, 500);
  for (const auto& [id, remaining] : {std::pair{0, 7}, {1, 3}, {2, 7}})
    run.add(running(id, remaining));
  run.start();
  CHECK(run.running() == 3);
  CHECK(run.context() == 30);
  CHECK(run.step_ns() == 1000);
  std::vector<std::int64_t> ends;
  run.finish(&ends);
  CHECK(ends == std::vector<std::int64_t>{3500, 7500, 7500});
  CHECK(run.clock() == 7500);
  CHECK(run.ended() == 3);
  CHECK(run.alive() == 0);
  CHECK(run.step_ns() == 0);
}

TEST_CASE("a run takes the same time at once and in parts") {
  const std::vector<StepSample> samples{{1, PairClass::kSameNode, 1, 1, 10, 1000, 0, 1},
                                        {1, PairClass::kSameNode, 1, 1, 50, 9000, 0, 1},
                                        {1, PairClass::kSameNode, 1, 1, 400, 9500, 0, 1}};
  const StepCurve curve(samples);
  PlayedReplica whole(curve, 8, 0), parts(curve, 8, 0);
  for (PlayedReplica* run : {&whole, &parts}) {
    run->add(running(0, 300));
    run->add(running(1, 40));
    run->start();
  }
  whole.finish();
  while (parts.alive() > 0) parts.advance(parts.clock() + 20'000);
  CHECK(std::abs(parts.clock() - whole.clock()) <= whole.clock() / 200);
}

TEST_CASE("a run stops with the step in which the time passes") {
  const StepCurve curve = flat();
  PlayedReplica run(curve, 8, 0);
  run.add(running(4, 10));
  run.start();
  run.advance(2500);
  CHECK(run.clock() == 3000);
  CHECK(run.context() == 13);
  REQUIRE(run.sequences().size() == 1);
  const SimulatedSequence s = run.sequences().front();
  CHECK(s.id == 4);
  CHECK(s.context == 13);
  CHECK(s.prompt == 5);
  CHECK(s.response == 8);
  CHECK(s.remaining == 7);
  run.advance(3000);  // is past
  CHECK(run.clock() == 3000);
}

TEST_CASE("sequences wait for a slot in their order") {
  const StepCurve curve = flat();
  PlayedReplica run(curve, 2, 0);
  for (int id = 0; id < 3; ++id) run.add(waiting(id, 5));
  run.start();
  CHECK(run.running() == 0);
  CHECK(run.waiting() == 3);
  run.advance(1);
  CHECK(run.running() == 2);
  CHECK(run.waiting() == 1);
  CHECK(run.alive() == 3);
  CHECK(run.sequences().back().id == 2);
  CHECK(run.sequences().front().context == 9);
  std::vector<std::int64_t> ends;
  run.finish(&ends);
  CHECK(ends == std::vector<std::int64_t>{5000, 5000, 10000});
}

TEST_CASE("a sequence that finds no slot is read again, for which the others wait") {
  const StepCurve curve = rising();
  PlayedReplica run(curve, 1, 0);
  run.add(running(0, 1));
  run.add(running(1, 4));
  run.start();
  CHECK(run.running() == 1);
  REQUIRE(run.waiting() == 1);
  CHECK(run.sequences().back().context == 0);
  CHECK(run.sequences().back().to_read == 10);
  run.advance(1);
  const std::int64_t before = run.clock();
  run.advance(before + 1);  // reads and makes a step
  CHECK(run.context() == 11);
  CHECK(run.clock() - before > 2 * curve.decode_ns(1, 10));
}

TEST_CASE("strides take the time of the steps that they stand for") {
  const StepCurve curve = rising();
  PlayedReplica whole(curve, 4, 0);
  for (const auto& [id, remaining] : {std::pair{0, 100}, {1, 340}, {2, 900}})
    whole.add(running(id, remaining));
  whole.start();
  PlayedReplica steps = whole;
  whole.finish();
  while (steps.alive() > 0) steps.advance(steps.clock() + 1);
  CHECK(std::abs(whole.clock() - steps.clock()) < steps.clock() / 1000);
  CHECK(whole.clock() > 900 * 1000);
}
