// SPDX-License-Identifier: Apache-2.0
#include "simulate/OneSwitch.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "simulate/LengthLaw.hpp"
#include "simulate/Roofline.hpp"

using namespace taper;

namespace {

std::vector<ReplayTrace> traces(const TailLaw& law, int count) {
  std::vector<ReplayTrace> list;
  for (int i = 0; i < count; ++i) {
    ReplayTrace t;
    t.work.iteration = i;
    t.work.sequences = 512;
    t.work.max_new_tokens = 16384;
    t.work.prompt_tokens = 512 * 100;
    const auto lengths = draw_lengths(law, 1, i, 512, 1, 16384);
    for (int s = 0; s < 512; ++s) t.outcomes.push_back({s, 100, lengths[s], false});
    list.push_back(std::move(t));
  }
  return list;
}

LatencyProfile profile(int ranks, int ranks_per_node) {
  MachineDescription m;
  m.ranks = ranks;
  m.ranks_per_node = ranks_per_node;
  m.device.tflops = 149.7;  // slow enough for the published costs to be small
  m.device.memory_gb_s = 696;
  m.inside.gb_s = 20;
  return describe_profile(m, {}, {}, possible_degrees(m, {}), {512, 16484});
}

}  // namespace

TEST_CASE("a published switch costs its parts, whatever it moves") {
  const PublishedSwitch published;
  CHECK(std::abs(published.total() - 5.52) < 1e-12);
  const LatencyProfile p = with_published_costs(profile(8, 8), published);
  const SimulatedMachine machine(p);
  const DivisorChain chain = DivisorChain::of(8);
  const Layout from = Layout::uniform(1, chain), to = Layout::uniform(8, chain);
  for (const int context : {1, 1000, 16000}) {
    const std::vector<SequenceState> one{{0, 3, context, 100, context - 100, 16384}};
    auto moves = place_sequences(from, to, Repack::kNo, one);
    const SwitchParts parts = machine.cost.price(from, resolve(to, machine.steps), one, moves);
    CHECK(parts.move == 2'360'000'000);
    CHECK(parts.weights == 1'030'000'000);
    CHECK(parts.graphs == 730'000'000);
    CHECK(parts.groups == 1'400'000'000);
    CHECK(parts.recompute == 0);
    CHECK(parts.total() == 5'520'000'000);
  }
}

TEST_CASE("the stand-in switches once at most, inside a node") {
  const DivisorChain chain = DivisorChain::of(8);
  const auto list = traces({}, 3);
  const LatencyProfile p = profile(8, 4);
  const std::vector<int> degrees = p.degrees();
  const OneSwitchResult result = play_one_switch(list, SimulatedMachine(p), degrees, chain, {}, 1);
  CHECK(result.first <= 4);
  CHECK(result.switches <= 2);
  CHECK(result.time_ns > 0);
  // Never slower than the tuned start without switching.
  const PublishedSwitch dear{1e6, 0, 0, 0};
  const OneSwitchResult none =
      play_one_switch(list, SimulatedMachine(p), degrees, chain, {}, 1, dear);
  CHECK(none.switches == 0);
  CHECK(result.time_ns <= none.time_ns * 101 / 100);
}

TEST_CASE("where exchanges are slow the stand-in stays with one rank") {
  MachineDescription m;
  m.inside = {10000, 1000, 0.1, AllReduceForm::kRing};
  const LatencyProfile p = describe_profile(m, {}, {}, possible_degrees(m, {}), {512, 16484});
  const auto result =
      play_one_switch(traces({}, 2), SimulatedMachine(p), p.degrees(), DivisorChain::of(8), {}, 1);
  CHECK(result.first == 1);
  CHECK(result.switches == 0);
}
