// SPDX-License-Identifier: Apache-2.0
#include "session/ThreadChoice.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

RankPlace on(const char* host, std::vector<int> cores) {
  return {"node", host, 16, std::move(cores)};
}

ThreadChoice choice(const HostMap& host_map, int rank,
                    const std::map<std::string, std::string>& variables = {}) {
  return choose_threads(host_map, rank, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

int room(const HostMap& host_map, int rank) {
  return choice(host_map, rank).threads();
}

}  // namespace

TEST_CASE("ranks that may run everywhere share the cores of their host") {
  const HostMap two{{on("a", {0, 1, 2, 3}), on("a", {0, 1, 2, 3})}};
  CHECK(room(two, 0) == 2);
  CHECK(room(two, 1) == 2);
  CHECK(choice(two, 0).cores == 4);
  CHECK(choice(two, 0).ranks == 2);
  const std::vector<int> six{0, 1, 2, 3, 4, 5};
  CHECK(room({{on("a", six), on("a", six), on("a", six)}}, 1) == 2);  // thirds are not lost
  CHECK(room({{on("a", {0, 1, 2}), on("a", {0, 1, 2})}}, 0) == 1);    // rounded down
  CHECK(room({{on("a", {0}), on("a", {0}), on("a", {0})}}, 2) == 1);  // never none
  CHECK(room({{on("a", six)}}, 0) == 6);
}

TEST_CASE("ranks that are bound have their cores for themselves, and other hosts do not count") {
  const HostMap bound{{on("a", {0, 1}), on("a", {2}), on("b", {0, 1}), on("b", {0, 1})}};
  CHECK(room(bound, 0) == 2);
  CHECK(room(bound, 1) == 1);
  CHECK(choice(bound, 0).ranks == 1);
  CHECK(room(bound, 2) == 1);
  CHECK(choice(bound, 2).ranks == 2);
  // One rank on all cores, one bound to half of them: 2 + 2/2 and 2/2.
  const HostMap mixed{{on("a", {0, 1, 2, 3}), on("a", {2, 3})}};
  CHECK(room(mixed, 0) == 3);
  CHECK(room(mixed, 1) == 1);
}

TEST_CASE("what the user says is left as it is") {
  const HostMap two{{on("a", {0, 1}), on("a", {0, 1})}};
  CHECK(choice(two, 0, {{"OMP_NUM_THREADS", "4"}}).threads() == 0);
  CHECK(choice(two, 0, {{"OMP_NUM_THREADS", "4"}}).setting == "OMP_NUM_THREADS");
  CHECK(choice(two, 0, {{"OMP_NUM_THREADS", "4"}, {"KOKKOS_NUM_THREADS", "2"}}).setting ==
        "KOKKOS_NUM_THREADS");
  CHECK(choice(two, 0, {{"OMP_NUM_THREADS", ""}}).threads() == 1);
}

TEST_CASE("a number of threads that is none is refused") {
  const HostMap one{{on("a", {0, 1})}};
  const auto refuses = [&](const std::string& name, const char* wrong) {
    CHECK_THROWS_WITH(choice(one, 0, {{name, wrong}}), ContainsSubstring(name + " is '" + wrong));
  };
  for (const char* wrong : {"abc", "0", "-1", "2x", "2 3", "99999999999"}) {
    refuses("OMP_NUM_THREADS", wrong);
    refuses("KOKKOS_NUM_THREADS", wrong);
  }
}

TEST_CASE("OpenMP alone takes a number for each level of nesting") {
  const HostMap one{{on("a", {0, 1})}};
  for (const char* list : {"2,1", " 4", "4, 2 ,1"})
    CHECK(choice(one, 0, {{"OMP_NUM_THREADS", list}}).setting == "OMP_NUM_THREADS");
  for (const char* wrong : {"4,,", "4,", ",4", "4,0", ","})
    CHECK_THROWS_WITH(choice(one, 0, {{"OMP_NUM_THREADS", wrong}}), ContainsSubstring(wrong));
  CHECK_THROWS_WITH(choice(one, 0, {{"KOKKOS_NUM_THREADS", "2,1"}}),
                    ContainsSubstring("KOKKOS_NUM_THREADS is '2,1'"));
}

TEST_CASE("the choice is told with its reason") {
  const HostMap two{{on("a", {0, 1}), on("a", {0, 1})}};
  CHECK(to_string(choice(two, 0), {1, 1}) == "1 thread per rank (chosen: 2 cores / 2 ranks)");
  CHECK(to_string(choice({{on("a", {3})}}, 0), {1}) ==
        "1 thread per rank (chosen: 1 core / 1 rank)");
  CHECK(to_string(choice(two, 0, {{"OMP_NUM_THREADS", "4"}}), {4, 4}) ==
        "4 threads per rank (OMP_NUM_THREADS)");
  CHECK(to_string(choice(two, 0), {1, 4, 2}) ==
        "1 to 4 threads per rank (of rank 0: 1, chosen: 2 cores / 2 ranks)");
}

TEST_CASE("more threads than there is room for are a warning that names host, ranks and numbers") {
  const HostMap two{{on("a", {0, 1}), on("a", {0, 1}), on("b", {0, 1})}};
  CHECK(thread_warnings(two, {1, 1, 2}).empty());
  const auto warnings = thread_warnings(two, {2, 2, 2});
  REQUIRE(warnings.size() == 1);
  for (const char* words : {"threads on a", "2 for each of the ranks 0, 1,",
                            "2 cores leave room for 1", "OMP_NUM_THREADS"})
    CHECK_THAT(warnings[0], ContainsSubstring(words));
  // Enough cores in all, but not where the threads are.
  const HostMap bound{{on("a", {0}), on("a", {1, 2, 3})}};
  REQUIRE(thread_warnings(bound, {2, 2}).size() == 1);
  CHECK_THAT(thread_warnings(bound, {2, 2})[0], ContainsSubstring("2 for each of the ranks 0,"));
  CHECK(thread_warnings(two, {2, 1, 4}).size() == 2);
}

TEST_CASE("ranks of many hosts in any order are held against those of their own host") {
  constexpr int kHosts = 300, kRanks = 4 * kHosts;
  HostMap host_map;
  std::vector<int> threads;
  for (int r = 0; r < kRanks; ++r) {  // round robin
    host_map.ranks.push_back(on(("h" + std::to_string(r % kHosts)).c_str(), {0, 1, 2, 3}));
    threads.push_back(r % kHosts == 7 ? 2 : 1);
  }
  const auto warnings = thread_warnings(host_map, threads);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("threads on h7 (2 for each of the ranks 7, 307, 607, "
                                            "907, but 4 cores leave room for 1)"));
  CHECK(thread_warnings(host_map, std::vector<int>(kRanks, 1)).empty());
}
