// SPDX-License-Identifier: Apache-2.0
#include "session/MemoryDomains.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "support/EnvironmentVariable.hpp"
#include "support/Messages.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// Whether this rank wants to share weights, until the end of the test case.
EnvironmentVariable wish(const char* word) {
  return {"TAPER_SHARE_WEIGHTS", word};
}

}  // namespace

TEST_CASE("ranks of a domain are told its first rank") {
  const auto yes = wish("yes");
  const TestRanks world;
  const std::vector<RankPlace>& places = world.ranks.hosts.ranks;
  for (int r = 0; r < world_size(); ++r) {
    const int domain = places[r].memory_domain;
    REQUIRE(domain <= r);
    if (domain >= 0) CHECK(places[domain].memory_domain == domain);
  }
  const Ranks alone = world.ranks.block(world.ranks.rank(), 1, {});
  CHECK_FALSE(alone.hosts.has_shared_memory());
}

TEST_CASE("a rank whose environment says no is in no domain") {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto said = wish(rank == world_size() - 1 ? "no" : "yes");
  const TestRanks world;
  CHECK(world.ranks.hosts.ranks.back().memory_domain == -1);
  if (world_size() <= 2) CHECK_FALSE(world.ranks.hosts.has_shared_memory());
}

TEST_CASE("another word than yes or no is an error") {
  const auto said = wish("maybe");
  CHECK_THAT(message_of([] { TestRanks(); }),
             ContainsSubstring("TAPER_SHARE_WEIGHTS is 'maybe' in the environment"));
}

TEST_CASE("cores are on the NUMA nodes that the system says") {
  const Scratch scratch;
  for (const char* name :
       {"cpu0/node1", "cpu0/topology", "cpu1/node0", "cpu3/node12", "cpu3/nodes"})
    std::filesystem::create_directories(scratch / name);
  CHECK(numa_nodes({0, 1}, scratch.path()) == std::vector<int>{0, 1});
  CHECK(numa_nodes({3}, scratch.path()) == std::vector<int>{12});
  CHECK(numa_nodes({2}, scratch.path()).empty());
}
