// SPDX-License-Identifier: Apache-2.0
#include "planner/Scenarios.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "planner/Race.hpp"
#include "simulate/LengthLaw.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;

TEST_CASE("expanded sequences fit the snapshot") {
  const DivisorChain chain = DivisorChain::of(2);
  ReplicaSnapshot a, b;
  a.lengths[5] = 3;  // 32..63
  a.lengths[6] = 1;  // 64..127
  a.prompts = 2;
  a.response = 3 * 40 + 80;
  a.context = a.response + 4 * 100;
  b.waiting = 2;
  const Snapshot s{Layout::uniform(1, chain), {a, b}, 0, 0, 0};
  const auto list = expand(s, {90, 1000, 2});
  REQUIRE(list.size() == 6);
  std::int64_t context = 0, response = 0;
  for (const SequenceState& q : list) {
    context += q.context;
    response += q.response;
    CHECK(q.id == &q - list.data());
    if (q.context > 0) CHECK(q.context == q.prompt + q.response);
  }
  CHECK(response == a.response);
  CHECK(context == a.context);
  CHECK(list[0].response == 40);
  CHECK(list[3].response == 80);
  CHECK(list[5].context == 0);
  CHECK(list[5].replica == 1);
  CHECK(list[5].prompt == 90);
  std::vector<int> owners;
  for (const SequenceState& q : list) owners.push_back(q.owner);
  CHECK(owners == std::vector<int>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("replicas that read the same prompts share their owners") {
  const DivisorChain chain = DivisorChain::of(4);
  ReplicaSnapshot r;
  r.lengths[5] = 3;
  r.prompts = 3;
  r.response = 3 * 40;
  r.context = r.response + 3 * 10;
  r.waiting = 2;
  const Snapshot s{Layout::uniform(1, chain), {r, r, r, r}, 0, 0, 0};
  const auto owners = [&](int readers) {
    std::vector<int> list;
    for (const SequenceState& q : expand(s, {10, 1000, 4, readers})) list.push_back(q.owner);
    return list;
  };
  // Running ones first. Of four samples two wait on each of two readers.
  CHECK(owners(1) == std::vector<int>{0,  1,  2,  3,  4,  5,  6,  7, 8, 9, 10, 11,  //
                                      12, 12, 13, 13, 14, 14, 15, 15});
  CHECK(owners(2) == std::vector<int>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5,  //
                                      6, 6, 6, 6, 7, 7, 7, 7});
  CHECK(owners(3) == std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4, 5,  //
                                      6, 7, 6, 7, 6, 7, 8, 9});
}

TEST_CASE("scenarios are a function of seed, iteration, sequence and number") {
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  const StepModel steps(profile);
  const SwitchCost cost(profile);
  LengthModel lengths(3);
  lengths.begin(1000);
  lengths.learn(draw_lengths(LengthLaw::kLogNormal, 3, 0, 500, 1000), {});
  const LayoutShape shape = resolve(Layout::uniform(2, DivisorChain::of(2)), steps);
  std::vector<SequenceState> sequences;
  for (int i = 0; i < 20; ++i) sequences.push_back({i, 0, 50, 10, 40, 1000});
  const auto time = [&](std::uint64_t seed, std::int64_t iteration, int scenario) {
    Scenarios scenarios(seed);
    scenarios.begin(iteration, 0);
    return scenarios.play(scenario, sequences, shape, cost, lengths, 64, StepPhase::kBegin)
        .finish();
  };
  CHECK(time(1, 1, 5) == time(1, 1, 5));
  CHECK(time(1, 1, 5) != time(1, 1, 6));
  CHECK(time(1, 1, 5) != time(2, 1, 5));
  CHECK(time(1, 1, 5) != time(1, 2, 5));
}

TEST_CASE("responses of one prompt end together as often as the share says") {
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1});
  const StepModel steps(profile);
  const SwitchCost cost(profile);
  LengthModel lengths(3);
  lengths.begin(1000);
  lengths.learn(draw_lengths(LengthLaw::kLogNormal, 3, 0, 500, 1000), {});
  const LayoutShape shape = resolve(Layout::uniform(1, DivisorChain::of(1)), steps);
  std::vector<SequenceState> pair{{0, 0, 50, 10, 40, 1000, 3}, {1, 0, 50, 10, 40, 1000, 3}};
  const auto together = [&](int share) {
    Scenarios scenarios(1);
    scenarios.begin(1, share);
    int count = 0;
    for (int k = 0; k < 64; ++k) {
      const auto ends = scenarios.play(k, pair, shape, cost, lengths, 64, StepPhase::kBegin).ends();
      count += ends[0] == ends[1];
    }
    return count;
  };
  CHECK(together(65536) == 64);
  CHECK(together(0) <= 3);
  const int half = together(46341);  // the square root of 1/2
  CHECK((half > 20 && half < 44));
  pair[1].owner = 4;
  CHECK(together(65536) <= 3);
}

TEST_CASE("in a race nothing goes on once enough prompts are complete") {
  const LatencyProfile profile = test::synthetic_profile(test::small_model_tcp(), {1, 2});
  const StepModel steps(profile);
  const SwitchCost cost(profile);
  LengthModel lengths(3);
  lengths.begin(1000);
  const auto drawn = draw_lengths(LengthLaw::kHeavyTail, 1, 1, 4000, 1000);
  lengths.learn(drawn, {});
  const LayoutShape shape = resolve(Layout::uniform(1, DivisorChain::of(2)), steps);
  constexpr int kPrompts = 12, kSamples = 4;
  std::vector<SequenceState> sequences;
  for (int i = 0; i < kPrompts * kSamples; ++i)
    sequences.push_back({i, i % 2, 60, 10, 50, 1000, i / kSamples});
  const auto final_lengths = [&](const Surplus& surplus) {
    Scenarios scenarios(9);
    scenarios.begin(3, 0, surplus, 2);
    std::vector<int> ends;
    const PlayedGeneration run =
        scenarios.play(1, sequences, shape, cost, lengths, 64, StepPhase::kBegin);
    for (const PlayedReplica& r : run.replicas())
      for (const SimulatedSequence& s : r.sequences()) {
        ends.resize(std::max<std::size_t>(ends.size(), s.id + 1));
        ends[s.id] = s.response + s.remaining;
      }
    return ends;
  };
  const std::vector<int> all = final_lengths({});
  for (const Surplus& surplus : {Surplus{8, 0}, Surplus{0, 1}, Surplus{3, 2}}) {
    Race race({kPrompts - surplus.prompts, kSamples - surplus.samples});
    for (int i = 0; i < std::ssize(all); ++i) race.ended({i / kSamples, i % kSamples}, all[i]);
    const std::vector<int> cut = final_lengths(surplus);
    REQUIRE(cut.size() == all.size());
    for (int i = 0; i < std::ssize(all); ++i)
      CHECK(cut[i] == std::min(all[i], race.bound(i / kSamples)));
    CHECK(cut != all);
  }
}
