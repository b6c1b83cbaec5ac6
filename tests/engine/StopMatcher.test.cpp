// SPDX-License-Identifier: Apache-2.0
#include "engine/StopMatcher.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "base/Random.hpp"

using namespace taper;

namespace {

using Ids = std::vector<std::int32_t>;

// Ids: 0 end of sequence (no bytes), then single letters, pairs, and pieces with several words.
const std::vector<std::string> kBytes{"",     "a",    "b",  "c",  "ab",       "bc",       "\n",
                                      "\n\n", "stop", "st", "op", "x stop y", "\xe2\x82", "\xac"};

StopMatcher matcher(Ids ids, std::vector<std::string> strings) {
  return StopMatcher({std::move(ids), std::move(strings), kBytes});
}

// Where a response that grows token by token ends: the number of tokens and the reason.
std::pair<std::size_t, std::optional<FinishReason>> end_of(const StopMatcher& m,
                                                           const Ids& response) {
  for (std::size_t n = 0; n <= response.size(); ++n)
    if (const auto reason = m.check(std::span(response).first(n))) return {n, reason};
  return {response.size(), std::nullopt};
}

using End = std::pair<std::size_t, std::optional<FinishReason>>;

}  // namespace

TEST_CASE("without stop options nothing stops a response") {
  const StopMatcher m({});
  CHECK(end_of(m, {0, 1, 2, 3}) == End{4, std::nullopt});
  CHECK_FALSE(m.check({}).has_value());
}

TEST_CASE("stop ids in any order, also repeated") {
  const auto m = matcher({9, 0, 4, 0}, {});
  CHECK(end_of(m, {1, 2, 0, 4}) == End{3, FinishReason::kEos});
  CHECK(end_of(m, {4}) == End{1, FinishReason::kEos});
  CHECK(end_of(m, {1, 2, 3}) == End{3, std::nullopt});
}

TEST_CASE("a stop string across token borders") {
  const auto m = matcher({}, {"stop"});
  CHECK(end_of(m, {1, 9, 10, 2}) == End{3, FinishReason::kStop});  // st|op
  CHECK(end_of(m, {1, 9, 1, 10}) == End{4, std::nullopt});         // st|a|op
  CHECK(end_of(m, {10, 9}) == End{2, std::nullopt});               // op|st
}

TEST_CASE("a stop string inside the last token, with bytes before and after it") {
  const auto m = matcher({}, {"stop"});
  CHECK(end_of(m, {8}) == End{1, FinishReason::kStop});
  CHECK(end_of(m, {1, 11, 2}) == End{2, FinishReason::kStop});  // "x stop y"
}

TEST_CASE("a stop string that was complete before the last token does not count again") {
  const auto m = matcher({}, {"stop"});
  CHECK_FALSE(m.check(Ids{8, 1}).has_value());
  CHECK_FALSE(m.check(Ids{8, 0}).has_value());  // nor with a token that has no bytes
  CHECK(m.check(Ids{8, 1, 8}).has_value());
}

TEST_CASE("several stop strings, the earliest end wins") {
  const auto m = matcher({}, {"\n\n", "abc", "cc"});
  CHECK(end_of(m, {1, 2, 3, 6, 6}) == End{3, FinishReason::kStop});  // a|b|c
  CHECK(end_of(m, {4, 3}) == End{2, FinishReason::kStop});           // ab|c
  CHECK(end_of(m, {1, 5}) == End{2, FinishReason::kStop});           // a|bc
  CHECK(end_of(m, {6, 1, 6, 6}) == End{4, FinishReason::kStop});
  CHECK(end_of(m, {1, 7}) == End{2, FinishReason::kStop});
  CHECK(end_of(m, {3, 3}) == End{2, FinishReason::kStop});
  CHECK(end_of(m, {1, 2, 6, 3, 1}) == End{5, std::nullopt});
}

TEST_CASE("a stop string of a character that tokens cut in two") {
  CHECK(end_of(matcher({}, {"\xe2\x82\xac"}), {1, 12, 13}) == End{3, FinishReason::kStop});
}

TEST_CASE("a stop id beats a stop string that ends with it") {
  CHECK(end_of(matcher({3}, {"c"}), {3}) == End{1, FinishReason::kEos});
}

TEST_CASE("an empty stop string is refused") {
  CHECK_THROWS_AS(matcher({}, {"ok", ""}), Error);
}

TEST_CASE("random responses end where a search in the whole text says") {
  RandomStream random(11, RandomPurpose::kTest, 0, 0);
  const std::vector<std::string> pool{"abc",   "ca",   "bb", "aab",   "\n\n",
                                      "stopa", "opst", "c",  "abcabc"};
  int stopped = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> strings;
    for (int i = 0, n = static_cast<int>(random.between(1, 3)); i < n; ++i)
      strings.push_back(pool[random.below(pool.size())]);
    Ids response;
    for (int i = 0; i < 12; ++i) response.push_back(static_cast<std::int32_t>(random.below(11)));
    End expected{response.size(), std::nullopt};
    std::string text;
    for (std::size_t n = 0; n < response.size() && !expected.second; ++n) {
      text += kBytes[response[n]];
      for (const auto& s : strings)
        if (text.find(s) != std::string::npos) expected = {n + 1, FinishReason::kStop};
    }
    stopped += expected.second.has_value();
    REQUIRE(end_of(matcher({}, strings), response) == expected);
  }
  CHECK(stopped > 500);
  CHECK(stopped < 2900);
}
