// SPDX-License-Identifier: Apache-2.0
#include "rollout/PinnedLengths.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <vector>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "results/RunFile.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::test::Scratch;
using taper::test::TestRanks;

namespace {

constexpr int kLimit = 64;

// Two samples of each of `count` prompts, from an ordinal on.
std::vector<Request> requests_from(std::int64_t first, int count) {
  std::vector<Request> list;
  for (int i = 0; i < count; ++i) list.push_back({first + i, 0, 2, {1}, kLimit});
  return list;
}

std::vector<std::int32_t> given(const PinnedLengths& lengths, std::int64_t iteration,
                                std::int64_t first, int count) {
  std::vector<Request> requests = requests_from(first, count);
  SamplingOptions sampling;
  sampling.iteration = static_cast<std::uint64_t>(iteration);
  lengths.pin(requests, sampling, 2);
  std::vector<std::int32_t> all;
  for (const Request& r : requests) all.insert(all.end(), r.pinned.begin(), r.pinned.end());
  return all;
}

// A run that went on from iteration 4.
std::string recorded_run(const Scratch& scratch, const TestRanks& f) {
  if (f.ranks.rank() == 0) {
    RunFile file(scratch / "run.h5");
    file.add_lengths(5, std::vector<int>{10, 11, 12, 13});
    file.add_lengths(6, std::vector<int>{20, 21});
    file.save();
  }
  return scratch.path().string();
}

}  // namespace

TEST_CASE("without a name the model ends its responses") {
  const TestRanks f;
  const PinnedLengths none("", 1, kLimit, f.ranks);
  CHECK_FALSE(none.is_on());
  CHECK(given(none, 1, 0, 2).empty());
}

TEST_CASE("lengths of a law depend on iteration, ordinal and sample alone") {
  const TestRanks f;
  const PinnedLengths lengths("heavy-tail", 3, kLimit, f.ranks);
  CHECK(lengths.is_on());
  const auto all = given(lengths, 2, 0, 32);
  CHECK(all == draw_lengths(LengthLaw::kHeavyTail, 3, 2, 64, kLimit));
  // More prompts, or a part of them, as of a later round of dynamic sampling.
  const auto part = given(lengths, 2, 8, 4);
  CHECK(part == std::vector<std::int32_t>(all.begin() + 16, all.begin() + 24));
  CHECK(given(lengths, 3, 0, 32) != all);
}

TEST_CASE("a prompt with a key of its own has the lengths of that key") {
  const TestRanks f;
  const PinnedLengths lengths("heavy-tail", 3, kLimit, f.ranks);
  SamplingOptions sampling;
  sampling.iteration = 9;
  sampling.keys = {{2, 3}, {5, 0}, {2, 1}};
  std::vector<Request> requests = requests_from(0, 3);
  lengths.pin(requests, sampling, 2);
  const auto second = given(lengths, 2, 0, 4), fifth = given(lengths, 5, 0, 1);
  CHECK(requests[0].pinned == std::vector<std::int32_t>{second[6], second[7]});
  CHECK(requests[1].pinned == fifth);
  CHECK(requests[2].pinned == std::vector<std::int32_t>{second[2], second[3]});
  // More samples than usual: the first ones are the same.
  std::vector<Request> more = requests_from(0, 3);
  for (Request& r : more) r.samples = 4;
  lengths.pin(more, sampling, 2);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(more[i].pinned.size() == 4);
    CHECK(std::equal(requests[i].pinned.begin(), requests[i].pinned.end(), more[i].pinned.begin()));
  }
  CHECK(more[0].pinned != more[2].pinned);
}

TEST_CASE("lengths of a run come again, from the first where it has fewer") {
  const TestRanks f;
  const Scratch scratch;
  const PinnedLengths lengths(recorded_run(scratch, f), 1, kLimit, f.ranks);
  CHECK(lengths.is_on());
  CHECK(given(lengths, 5, 0, 2) == std::vector<std::int32_t>{10, 11, 12, 13});
  CHECK(given(lengths, 5, 1, 2) == std::vector<std::int32_t>{12, 13, 10, 11});
  CHECK(given(lengths, 6, 0, 2) == std::vector<std::int32_t>{20, 21, 20, 21});
  for (const int iteration : {1, 3, 7}) {
    INFO(iteration);
    CHECK(given(lengths, iteration, 0, 1) == std::vector<std::int32_t>{10, 11});
  }
}

TEST_CASE("what gives no lengths is refused by its name") {
  const TestRanks f;
  const Scratch scratch;
  const auto refuses = [&](const std::string& from, int limit, const std::string& words) {
    CHECK_THROWS_MATCHES(
        PinnedLengths(from, 1, limit, f.ranks), Error,
        MessageMatches(ContainsSubstring("Rollout/Lengths is ") && ContainsSubstring(words)));
  };
  refuses("heavy-tale", kLimit, "did you mean heavy-tail?");
  refuses((scratch / "nothing").string(), kLimit,
          "neither a law of lengths nor a directory); check the path");
  refuses(scratch.path().string(), kLimit, "no run.h5 in it");
  barrier(f.ranks.world());
  refuses(recorded_run(scratch, f), 20, "responses of 21 tokens, Rollout/Max New Tokens is 20");
  barrier(f.ranks.world());
  if (f.ranks.rank() == 0) RunFile(scratch / "run.h5").save();
  refuses(scratch.path().string(), kLimit, "contains no responses");
}
