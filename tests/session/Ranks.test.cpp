// SPDX-License-Identifier: Apache-2.0
#include "session/Ranks.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("a chain holds the degrees asked for, and steps between them") {
  CHECK(chain_with(8, {}).degrees() == std::vector<int>{1, 2, 4, 8});
  CHECK(chain_with(12, {6}).has(6));
  CHECK(chain_with(12, {4}).has(4));
  CHECK_THROWS_AS(chain_with(8, {3}), Error);
  CHECK_THROWS_AS(chain_with(12, {4, 6}), Error);
}

TEST_CASE("degrees that do not fit are named with their options") {
  CHECK_NOTHROW(require_divisible(8, {{"Rollout/Tensor Parallel", 2}, {"Training/...", 4}}));
  CHECK_THROWS_MATCHES(require_divisible(8, {{"Rollout/Tensor Parallel", 3}}), Error,
                       MessageMatches(ContainsSubstring("Rollout/Tensor Parallel is 3")));
  CHECK_THROWS_MATCHES(
      require_divisible(12, {{"Rollout/Tensor Parallel", 4}, {"Training/Tensor Parallel", 6}}),
      Error, MessageMatches(ContainsSubstring("4 and Training/Tensor Parallel is 6")));
}

TEST_CASE("layouts that the ranks cannot form are named with their option") {
  const auto problem = [](const char* text, int ranks) -> std::string {
    try {
      require_layout("Rollout/Layout", text, ranks);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(problem("", 3).empty());
  CHECK(problem("2x4", 8).empty());
  CHECK(problem("4+2+2", 8).empty());
  CHECK_THAT(problem("3x1", 2),
             ContainsSubstring("Rollout/Layout is 3x1 (for 3 ranks; there are 2"));
  CHECK_THAT(problem("foo", 2), ContainsSubstring("Rollout/Layout is 'foo' (expected: TPxDP"));
  CHECK_THAT(problem("2+1", 3), ContainsSubstring("degree 2 does not divide the 3 ranks"));
  CHECK_THAT(problem("1+2+1", 4), ContainsSubstring("group of 2 starts at rank 1"));
  CHECK_THAT(problem("3+3+2+2+2", 12), ContainsSubstring("2 and 3: one must divide the other"));
}

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

TEST_CASE("the address-space limit of a process bounds its own plan alone") {
  TestRanks world;
  auto& places = world.ranks.hosts.ranks;
  places.resize(4, places.front());
  MemoryPlan plan;
  plan.add("weights", MemoryPhase::kAlways, 64 << 20);
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_AS, &old) == 0);
  const auto check_with = [&](std::int64_t left) {
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = old;
    limit.rlim_cur = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + left);
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    std::string problem;
    try {
      require_memory(world.ranks, plan, "use less");
    } catch (const Error& error) {
      problem = error.what();
    }
    REQUIRE(setrlimit(RLIMIT_AS, &old) == 0);
    return problem;
  };
  CHECK(check_with(128 << 20).empty());  // not four times the plan
  CHECK_THAT(check_with(32 << 20),
             ContainsSubstring("64.00 MiB") && ContainsSubstring("raise ulimit -v"));
}

TEST_CASE("what must be equal is compared with rank 0") {
  const TestRanks world;
  CHECK_NOTHROW(require_equal(world.ranks, "the run file", "the same"));
  if (world_size() == 1) return;
  const std::string text = world.ranks.rank() == world_size() - 1 ? "another" : "one";
  CHECK_THROWS_MATCHES(require_equal(world.ranks, "the run file", text), Error,
                       MessageMatches(ContainsSubstring("the run file: ranks 0 and " +
                                                        std::to_string(world_size() - 1))));
}

TEST_CASE("what rank 0 finds, or why it fails, reaches all ranks") {
  const TestRanks world;
  int calls = 0;
  CHECK(from_rank_0(world.ranks, [&] { return "found " + std::to_string(++calls); }) == "found 1");
  CHECK(calls == (world.ranks.rank() == 0 ? 1 : 0));
  try {
    from_rank_0(world.ranks, []() -> std::string { TAPER_FAIL(ExitCode::kStoppedEarly, "no"); });
    FAIL_CHECK("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "no");
    CHECK(error.code() == ExitCode::kStoppedEarly);
  }
  const auto code_of = [&](const std::function<std::string()>& make) {
    try {
      from_rank_0(world.ranks, make);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("on purpose") != std::string::npos);
      return error.code();
    }
    return ExitCode::kDone;
  };
  CHECK(code_of([]() -> std::string {
          std::filesystem::directory_iterator("/on purpose not there");
          return "";
        }) == ExitCode::kBadInput);
  CHECK(code_of([]() -> std::string { throw std::runtime_error("on purpose"); }) ==
        ExitCode::kFailure);
}
