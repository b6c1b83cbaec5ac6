// SPDX-License-Identifier: Apache-2.0
#include "session/Ranks.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "kernels/Instructions.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("what must be equal is compared with rank 0") {
  const TestRanks world;
  CHECK_NOTHROW(require_equal(world.ranks, "the run file", "the same"));
  if (world_size() == 1) return;
  const std::string text = world.ranks.rank() == world_size() - 1 ? "another" : "one";
  CHECK_THROWS_MATCHES(require_equal(world.ranks, "the run file", text), Error,
                       MessageMatches(ContainsSubstring("the run file: ranks 0 and " +
                                                        std::to_string(world_size() - 1))));
}

TEST_CASE("the facts of a job say how it is spread") {
  TestRanks world;
  for (int r = 0; r < world_size(); ++r)
    world.ranks.hosts.ranks[r].host = "host " + std::to_string(r / 2);
  const auto facts = job_facts(world.ranks);
  CHECK(facts.size() == 3);
  CHECK(facts.at("ranks") == std::to_string(world_size()));
  const int first = world.ranks.rank() / 2 * 2;
  CHECK(facts.at("ranks_per_host") == std::to_string(std::min(world_size() - first, 2)));
  CHECK(std::stoi(facts.at("threads_per_rank")) >= 1);
  CHECK(run_facts(world.ranks).at("instructions") == to_string(host_instructions().widest));
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
  CHECK(from_rank_0(world.ranks, [] {
          return std::vector<std::filesystem::path>{"a\nb", ""};
        }) == std::vector<std::filesystem::path>{"a\nb", ""});
  const auto code_of = [&](const std::function<void()>& act) {
    try {
      on_rank_0(world.ranks, act);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("on purpose") != std::string::npos);
      return error.code();
    }
    return ExitCode::kDone;
  };
  CHECK(code_of([] { std::filesystem::directory_iterator("/on purpose not there"); }) ==
        ExitCode::kBadInput);
  CHECK(code_of([] { throw std::runtime_error("on purpose"); }) == ExitCode::kFailure);
  CHECK(code_of([&] { ++calls; }) == ExitCode::kDone);
  CHECK(calls == (world.ranks.rank() == 0 ? 2 : 0));
}

namespace {

// The world ranks that a group really reaches, in the order of the group.
std::vector<int> reached(const Group& group, int world_rank) {
  std::vector<int> members(static_cast<std::size_t>(group.size()));
  all_gather(group, members, std::vector{world_rank});
  return members;
}

}  // namespace

TEST_CASE("a block of ranks has groups, numbers and hosts of its own") {
  TestRanks world;
  const int ranks = world_size(), me = world.ranks.rank();
  for (int r = 0; r < ranks; ++r) world.ranks.hosts.ranks[r].node = "node " + std::to_string(r);
  for (int cut = 0; cut < ranks; ++cut) {  // one block of all, then any two
    const int first = me < cut ? 0 : cut, size = me < cut ? cut : ranks - cut;
    INFO("ranks " << first << " to " << first + size - 1);
    const Ranks block = world.ranks.block(first, size, {});
    CHECK(block.size() == size);
    CHECK(block.rank() == me - first);
    CHECK(block.chain.ranks() == size);
    CHECK(&block.progress == &world.progress);
    REQUIRE(std::ssize(block.hosts.ranks) == size);
    CHECK(block.hosts.ranks.front().node == "node " + std::to_string(first));
    CHECK(block.hosts.ranks.back().node == "node " + std::to_string(first + size - 1));
    CHECK(block.ranks_on_host() <= size);
    for (const int degree : block.chain.degrees()) {
      std::vector<int> expected = block.chain.group(degree, block.rank() / degree);
      for (int& rank : expected) rank += first;
      const Group& tp = block.groups.tp_group(degree);
      CHECK(reached(tp, me) == expected);
      CHECK(tp.rank() == block.chain.shard_index(block.rank(), degree));
      const Group& dp = block.groups.dp_group(degree);
      CHECK(dp.size() == size / degree);
      CHECK(dp.rank() == block.rank() / degree);
      for (const int peer : reached(dp, me))
        CHECK(block.chain.shard_index(peer - first, degree) == tp.rank());
    }
    // A block of a block.
    const Ranks self = block.block(block.rank(), 1, {});
    CHECK(self.world().is_null());
    CHECK(self.hosts.ranks.front().node == "node " + std::to_string(me));
  }
}

TEST_CASE("a block works while the other one waits for something else") {
  const TestRanks world;
  const int ranks = world_size(), me = world.ranks.rank();
  for (int cut = 0; cut < ranks; ++cut) {
    const bool is_lower = me < cut;
    const int first = is_lower ? 0 : cut, size = is_lower ? cut : ranks - cut;
    const Ranks block = world.ranks.block(first, size, {});
    const auto work = [&] {
      for (int i = 0; i < 20; ++i) {
        std::vector<std::int64_t> sum{me};
        all_reduce_sum(block.world(), sum);
        CHECK(sum.front() == std::int64_t{size} * (2 * first + size - 1) / 2);
      }
      CHECK(from_rank_0(block, [&] { return std::to_string(me); }) == std::to_string(first));
      CHECK_NOTHROW(require_equal(block, "the block", std::to_string(first)));
    };
    // First the upper block works alone, then the lower one.
    if (!is_lower) work();
    barrier(world.ranks.world());
    if (is_lower) work();
    barrier(world.ranks.world());
  }
}

TEST_CASE("blocks that cannot be are refused on every rank") {
  const TestRanks world;
  const int ranks = world_size();
  CHECK_THROWS_AS(world.ranks.block(0, ranks, {ranks + 1}), Error);
  CHECK_THROWS_AS(world.ranks.block(0, ranks + 1, {}), Error);
  if (ranks > 1) CHECK_THROWS_AS(world.ranks.block(0, 1, {}), Error);
}
