// SPDX-License-Identifier: Apache-2.0
#include "session/HostMap.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>

#include "base/Error.hpp"
#include "comm/Group.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

RankPlace place(const char* node, const char* host, int host_cores, std::vector<int> cores) {
  return {node, host, host_cores, std::move(cores)};
}

}  // namespace

TEST_CASE("nodes are numbered by their first rank") {
  const HostMap host_map{{place("n1", "h", 4, {0}), place("n0", "h", 4, {1}),
                          place("n1", "h", 4, {2}), place("n2", "g", 4, {0})}};
  CHECK(host_map.nodes() == std::vector<std::string>{"n1", "n0", "n2"});
  CHECK(host_map.node_of_rank() == std::vector<int>{0, 1, 0, 2});
  CHECK(host_map.ranks_on_host(0) == 3);
  CHECK(host_map.ranks_on_host(3) == 1);
}

TEST_CASE("two ranks pinned to one core are refused") {
  const HostMap shared{{place("n0", "h", 2, {0}), place("n1", "h", 2, {0})}};
  REQUIRE(pinning_problems(shared).size() == 1);
  CHECK_THAT(pinning_problems(shared)[0], ContainsSubstring("ranks 0 and 1"));
  CHECK_THROWS_AS(check_host_map(shared), Error);

  CHECK(pinning_problems({{place("a", "h", 2, {0}), place("a", "h", 2, {1})}}).empty());
  CHECK(pinning_problems({{place("a", "h", 2, {0}), place("b", "g", 2, {0})}}).empty());
}

TEST_CASE("ranks that are not pinned may share cores, with a warning where they must") {
  const HostMap free{{place("n", "h", 2, {0, 1}), place("n", "h", 2, {0, 1})}};
  CHECK(pinning_problems(free).empty());
  CHECK(oversubscription_warnings(free).empty());
  const HostMap tight{{place("n", "h", 1, {0}), place("n", "h", 1, {0})}};
  CHECK(pinning_problems(tight).empty());  // the machine has no other core
  REQUIRE(oversubscription_warnings(tight).size() == 1);
  CHECK_THAT(oversubscription_warnings(tight)[0], ContainsSubstring("2 ranks share 1 cores of h"));
  CHECK_NOTHROW(check_host_map(tight));
}

TEST_CASE("the table names rank, node and cores") {
  const HostMap host_map{{place("n0", "h", 16, {0, 1, 2, 3, 8}), place("n1", "g", 2, {0, 1})}};
  const auto table = to_string(host_map);
  CHECK_THAT(table, ContainsSubstring("rank 0  node n0  cores 0-3,8\n"));
  CHECK_THAT(table, ContainsSubstring("rank 1  node n1  cores 0-1 (not pinned)"));
}

TEST_CASE("ranks that share a GPU are found") {
  HostMap host_map{{place("n", "h", 2, {0}), place("n", "h", 2, {1}), place("n", "g", 2, {0})}};
  CHECK(host_map.sharing_gpus().empty());
  for (RankPlace& rank : host_map.ranks) rank.gpu = "A (0)";
  CHECK(host_map.ranks.front().gpu_name() == "A");
  CHECK(host_map.sharing_gpus() == std::vector<std::vector<int>>{{0, 1}});  // g has another one
  CHECK(host_map.rank_on_host(1) == 1);
  CHECK(host_map.rank_on_host(2) == 0);
  CHECK_THAT(to_string(host_map), ContainsSubstring("cores 1  GPU A (0)"));
}

TEST_CASE("places are found and gathered from all ranks") {
  const Group world = Group::world(MPI_COMM_WORLD);
  auto mine = find_place("node\n" + std::to_string(world.rank() / 2));
  CHECK_FALSE(mine.cores.empty());
  CHECK(mine.host_cores >= static_cast<int>(mine.cores.size()));
  const auto host_map = gather_host_map(world, mine);
  REQUIRE(static_cast<int>(host_map.ranks.size()) == world.size());
  for (int r = 0; r < world.size(); ++r) {
    CHECK(host_map.ranks[r].node == "node\n" + std::to_string(r / 2));
    CHECK(host_map.ranks[r].host == mine.host);
    CHECK(host_map.ranks[r].host_cores == mine.host_cores);
  }
  CHECK(host_map.ranks[world.rank()].cores == mine.cores);
}

TEST_CASE("Slurm's node name counts before the host name") {
  const char* before = std::getenv("SLURMD_NODENAME");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("SLURMD_NODENAME", "virtual-3", 1);
  CHECK(find_place().node == "virtual-3");
  ::setenv("TAPER_NODE", "of-the-user", 1);
  CHECK(find_place().node == "of-the-user");
  CHECK(find_place("mine").node == "mine");
  ::unsetenv("TAPER_NODE");
  ::unsetenv("SLURMD_NODENAME");
  CHECK(find_place().node == find_place().host);
  if (!kept.empty()) ::setenv("SLURMD_NODENAME", kept.c_str(), 1);
}
