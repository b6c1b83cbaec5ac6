// SPDX-License-Identifier: Apache-2.0
#include "rollout/GatheredResponses.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/TestRanks.hpp"

using namespace taper;
using taper::test::TestRanks;

namespace {

// Response k of a rank: a prompt of 5 tokens and 15 + k of a response.
Completion response(int rank, int k, int ranks) {
  Completion c;
  c.id = {k * ranks + rank, 0};
  c.prompt.assign(5, rank);
  c.response.assign(static_cast<std::size_t>(15 + k), k);
  c.log_probs.assign(c.response.size(), 1.0f);
  return c;
}

}  // namespace

TEST_CASE("all ranks get the responses of all, in the order of their ids") {
  const TestRanks test;
  const Ranks& ranks = test.ranks;
  std::vector<Completion> mine;
  for (int k = 0; k < 4; ++k) mine.push_back(response(ranks.rank(), k, ranks.size()));
  const auto all = gather_responses(ranks.world(), mine, {1000, 1000000});
  REQUIRE(std::ssize(all) == 4 * ranks.size());
  for (int i = 0; i < 4 * ranks.size(); ++i) {
    const Completion expected = response(i % ranks.size(), i / ranks.size(), ranks.size());
    CHECK(all[i].id == expected.id);
    CHECK(all[i].prompt == expected.prompt);
    CHECK(all[i].response == expected.response);
    CHECK(all[i].log_probs.empty());
  }
}

TEST_CASE("of more than there is room for, every rank sends its last ones") {
  const TestRanks test;
  const Ranks& ranks = test.ranks;
  std::vector<Completion> mine;
  // Twice as many on the last rank.
  const int count = ranks.rank() + 1 == ranks.size() ? 40 : 20;
  std::int64_t tokens = 0, room = 0;
  for (int r = 0; r < ranks.size(); ++r)
    for (int k = 0; k < (r + 1 == ranks.size() ? 40 : 20); ++k) room += 20 + k;
  const std::int64_t total = room;
  room /= 2;
  for (int k = 0; k < count; ++k) mine.push_back(response(ranks.rank(), k, ranks.size()));
  const auto all = gather_responses(ranks.world(), mine, {total, room});
  std::vector<int> of_rank(static_cast<std::size_t>(ranks.size()), 0);
  for (const Completion& c : all) {
    tokens += std::ssize(c.prompt) + std::ssize(c.response);
    ++of_rank[c.prompt.front()];
    // The last ones are the longest.
    CHECK(std::ssize(c.response) >= 15 + (c.prompt.front() + 1 == ranks.size() ? 20 : 8));
  }
  CHECK(tokens <= room);
  CHECK(tokens > room - 60 * ranks.size());
  for (const int n : of_rank) CHECK(n > 0);
  CHECK(gather_responses(ranks.world(), mine, {total, 0}).empty());
}
