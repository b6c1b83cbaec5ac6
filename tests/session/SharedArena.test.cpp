// SPDX-License-Identifier: Apache-2.0
#include "session/SharedArena.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/Collectives.hpp"
#include "support/Messages.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// An item that all ranks share where they can, and one that none does.
MemoryPlan plan_of(const Ranks& ranks) {
  MemoryPlan plan;
  const bool together = ranks.hosts.has_shared_memory();
  plan.add("weights", MemoryPhase::kAlways, 1000, MemoryKind::kModel,
           {"all", together ? ranks.size() : 1, !together || ranks.rank() == 0});
  plan.add("cache", MemoryPhase::kAlways, 64);
  return plan;
}

}  // namespace

TEST_CASE("a shared item is one copy, others are one for each rank") {
  const TestRanks world;
  const Ranks& ranks = world.ranks;
  const bool together = ranks.hosts.has_shared_memory();
  const auto arena = make_arena(ranks, plan_of(ranks));
  auto* weights = arena->take<int>("weights", MemoryPhase::kAlways, 2 * ranks.size());
  auto* cache = arena->take<int>("cache", MemoryPhase::kAlways, 1);
  weights[ranks.rank()] = 10 + ranks.rank();
  *cache = ranks.rank();
  arena->populate();
  barrier(ranks.world());
  for (int r = 0; r < ranks.size(); ++r) {
    CHECK(weights[r] == (together || r == ranks.rank() ? 10 + r : 0));
    CHECK(weights[ranks.size() + r] == 0);
  }
  CHECK(*cache == ranks.rank());
  barrier(ranks.world());
}

TEST_CASE("a host counts a shared item once") {
  const TestRanks world;
  if (!world.ranks.hosts.has_shared_memory()) return;
  std::vector<std::int64_t> bytes{plan_of(world.ranks).total()};
  all_reduce_sum(world.ranks.world(), bytes);
  CHECK(bytes[0] == 1024 + 64 * world_size());
  CHECK(plan_of(world.ranks).uncounted() == (world.ranks.rank() == 0 ? 0 : 1024));
}

TEST_CASE("two ranks that make one copy are a bug that is found") {
  const TestRanks world;
  if (!world.ranks.hosts.has_shared_memory()) return;
  MemoryPlan plan;
  plan.add("weights", MemoryPhase::kAlways, 64, MemoryKind::kModel, {"all", world_size(), true});
  CHECK_THAT(message_of([&] { make_arena(world.ranks, plan); }),
             ContainsSubstring("two ranks have made the copy 'all: weights'"));
}
