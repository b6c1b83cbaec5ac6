// SPDX-License-Identifier: Apache-2.0
#include "session/MemoryCheck.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <fstream>
#include <string>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// Of a plan, where so many addresses are left to this process.
std::string problem_with(const Ranks& ranks, const MemoryPlan& plan, std::int64_t left) {
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_AS, &old) == 0);
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit = old;
  limit.rlim_cur = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + left);
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  std::string problem;
  try {
    require_memory(ranks, plan, "use less");
  } catch (const Error& error) {
    problem = error.what();
  }
  REQUIRE(setrlimit(RLIMIT_AS, &old) == 0);
  return problem;
}

}  // namespace

TEST_CASE("a memory plan that does not fit is that of the rank that it is too large for") {
  const TestRanks world;
  const int last = world_size() - 1;
  MemoryPlan small, mine;
  small.add("weights", MemoryPhase::kAlways, 1 << 20);
  mine.add("weights", MemoryPhase::kAlways,
           world.ranks.rank() == last ? std::int64_t{1} << 56 : 1 << 20);
  CHECK_NOTHROW(require_memory(world.ranks, small, "use less"));
  CHECK_THROWS_MATCHES(
      require_memory(world.ranks, mine, "use less"), Error,
      MessageMatches(ContainsSubstring("rank " + std::to_string(last) + " needs " +
                                       format_bytes(std::ldexp(1.0, 56))) &&
                     ContainsSubstring("for weights") && ContainsSubstring("use less")));
}

TEST_CASE(
    "ranks of a host may need different memory, and the advice is that of the rank that needs it") {
  const TestRanks world;
  const int last = world_size() - 1;
  MemoryPlan plan;
  // Each rank alone would fit; together they are twice of what any host has.
  const std::int64_t most = std::int64_t{1} << 55;
  plan.add(world.ranks.rank() == last ? "weights" : "pages", MemoryPhase::kAlways,
           world.ranks.rank() == last ? most : 1 << 20);
  const std::string mine = "advice of rank " + std::to_string(world.ranks.rank());
  const std::string bytes =
      format_bytes(static_cast<double>(most + std::int64_t{last} * (1 << 20)));
  const std::string need = last == 0
                               ? bytes + ", of which " + bytes + " for weights, and its host has "
                               : "need " + bytes + " together (the host has ";
  CHECK_THROWS_MATCHES(require_memory(world.ranks, plan, mine), Error,
                       MessageMatches(ContainsSubstring(need)));
}

TEST_CASE("what another rank counts is not in the need of a rank, but in that of its process") {
  const TestRanks world;
  MemoryPlan plan;
  plan.add("cache", MemoryPhase::kAlways, 1 << 20);
  plan.add("weights", MemoryPhase::kAlways, std::int64_t{1} << 56, MemoryKind::kModel,
           {"domain 0", 2, false});
  CHECK_NOTHROW(require_memory(world.ranks, plan, "use less"));
  CHECK_THAT(problem_with(world.ranks, plan, std::int64_t{1} << 40),
             ContainsSubstring("for weights") &&
                 ContainsSubstring(format_bytes(std::ldexp(1.0, 56))) &&
                 ContainsSubstring("raise ulimit -v"));
}

TEST_CASE("the address-space limit of a process bounds its own plan alone") {
  TestRanks world;
  auto& places = world.ranks.hosts.ranks;
  places.resize(4, places.front());
  MemoryPlan plan;
  plan.add("weights", MemoryPhase::kAlways, 64 << 20);
  const auto check_with = [&](std::int64_t left) { return problem_with(world.ranks, plan, left); };
  CHECK(check_with(128 << 20).empty());  // not four times the plan
  CHECK_THAT(check_with(32 << 20),
             ContainsSubstring("64.00 MiB") && ContainsSubstring("raise ulimit -v"));
}
