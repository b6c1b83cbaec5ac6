// SPDX-License-Identifier: Apache-2.0
#include "profile/StepProbe.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "profile/SwitchProbe.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

namespace {

StepProbeOptions small() {
  StepProbeOptions o;
  o.max_positions = 300;
  o.max_batch = 3;
  o.step_rows = 40;
  o.kv_memory_mb = 8;
  return o;
}

struct World : TestRanks {
  ModelFiles files{TAPER_DATA_DIR "/model"};
};

}  // namespace

TEST_CASE("steps of any kind within the limits are timed on all replicas of all degrees") {
  World w;
  StepProbe probe(small(), w.files, w.ranks, w.ranks.chain.degrees());
  CHECK(probe.memory_plan().total() > 0);
  probe.load();
  for (const int degree : w.ranks.chain.degrees()) {
    CHECK(probe.max_batch(degree) == 3 * degree);
    CHECK(probe.max_tokens(degree) == 40);
    for (const int batch : {1, probe.max_batch(degree)})
      for (const int tokens : {batch, 40}) {
        const std::int64_t most = probe.max_context(degree, tokens, batch);
        REQUIRE(most > tokens);
        for (const std::int64_t context : {std::int64_t{tokens}, (tokens + most) / 2, most}) {
          INFO("TP " << degree << ", " << tokens << " tokens of " << batch << ", " << context);
          const auto ns = probe.measure(degree, {tokens, batch, context}, 2, 3);
          CHECK(ns.size() == static_cast<std::size_t>(3 * world_size() / degree));
          for (const auto value : ns) CHECK(value > 0);
          auto rank0 = ns;
          broadcast(w.ranks.world(), rank0, 0);
          CHECK(rank0 == ns);
        }
      }
    CHECK_NOTHROW(probe.measure(degree, {1, 1, 100}, 1, StepProbe::kLongestRun - 1));
    for (const int batch : {1, 3})
      for (const int drafted : {1, 7}) {
        const auto ns =
            probe.measure(degree, {batch * (1 + drafted), batch, 30 * batch, drafted}, 1, 3);
        CHECK(ns.size() == static_cast<std::size_t>(3 * world_size() / degree));
        for (const auto value : ns) CHECK(value > 0);
      }
  }
}

TEST_CASE("the cache bounds the context") {
  World w;
  StepProbeOptions o = small();
  o.max_batch = 64;
  StepProbe probe(o, w.files, w.ranks, {1});
  const std::int64_t blocks = (8 << 20) / (4 * 4 * 64 * 128 * 4);  // of 4 layers and heads
  CHECK(probe.max_context(1, 64, 64) < blocks * 64);
  CHECK(probe.max_context(1, 1, 1) < 300);
  CHECK(probe.max_context(1, 1, 1) > 200);
}

TEST_CASE("bad options are refused") {
  World w;
  StepProbeOptions o = small();
  o.max_positions = 5;
  CHECK_THROWS_AS(StepProbe(o, w.files, w.ranks, {1}), Error);
  o = small();
  o.kv_memory_mb = 0.001;  // not one sequence fits
  CHECK_THROWS_AS(StepProbe(o, w.files, w.ranks, {1}), Error);
}

TEST_CASE("costs of switching are measured in the merged groups, each class on its own") {
  World w;
  StepProbe probe(small(), w.files, w.ranks, w.ranks.chain.degrees());
  probe.load();
  for (const int degree : w.ranks.chain.degrees()) {
    std::vector<PairClass> pairs(world_size() / degree, PairClass::kSameNode);
    pairs.back() = PairClass::kOtherNode;
    const MeasuredSwitch cost = measure_switch(w.ranks, probe.weights(), probe.parallel(degree),
                                               degree, PairClass::kOtherNode, pairs, 64 * 128 * 4);
    CHECK(cost.degree == degree);
    CHECK(cost.pair == PairClass::kOtherNode);
    CHECK(cost.groups >= 0);
    CHECK(cost.weights > 0);
    if (degree == 1) continue;
    CHECK(cost.kv_move.latency >= 0);
    CHECK(cost.kv_move.bytes_per_second > 0);
  }
}

TEST_CASE("all ranks measure the same meeting") {
  TestRanks w;
  std::vector<double> seconds{measure_meeting(w.ranks, 3)}, all(world_size());
  CHECK(seconds.front() > 0);
  all_gather(w.ranks.world(), all, seconds);
  CHECK(all == std::vector<double>(world_size(), seconds.front()));
}
