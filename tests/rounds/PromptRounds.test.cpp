// SPDX-License-Identifier: Apache-2.0
#include "rounds/PromptRounds.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <numeric>
#include <vector>

#include "base/Random.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

RoundOptions tail(double prompts, double samples = 1.0) {
  return {RoundMode::kTail, prompts, samples};
}

// The stream numbers that a round keeps if prompt number n has length lengths[n].
std::vector<std::int64_t> play(PromptRounds& rounds, const std::vector<int>& lengths) {
  const Round round = rounds.next();
  std::vector<int> longest(round.prompts.size(), 0);
  Race race(round.goal);
  for (std::size_t i = 0; i < round.prompts.size(); ++i)
    for (int k = 0; k < round.samples; ++k)
      race.ended({static_cast<std::int64_t>(i), k}, lengths.at(round.prompts[i]) + k);
  for (const ResponseId& id : race.kept())
    longest[id.prompt] =
        std::max(longest[id.prompt], lengths.at(round.prompts[id.prompt]) + id.sample);
  rounds.conclude(round, longest);
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < longest.size(); ++i)
    if (longest[i] > 0) numbers.push_back(round.prompts[i]);
  return numbers;
}

}  // namespace

TEST_CASE("plain rounds have the next prompts") {
  PromptRounds rounds({}, 3, 4);
  for (std::int64_t i = 0; i < 3; ++i) {
    const Round round = rounds.next();
    CHECK(round.kind == RoundKind::kPlain);
    CHECK_FALSE(round.is_race);
    CHECK(round.samples == 4);
    CHECK(round.prompts == std::vector<std::int64_t>{3 * i, 3 * i + 1, 3 * i + 2});
    rounds.conclude(round, std::vector<int>(3, 10));
  }
  CHECK(rounds.begun() == 9);
  CHECK(rounds.waiting().empty());
}

TEST_CASE("four short rounds that put off a quarter fill a long one") {
  std::vector<int> lengths(40);
  std::iota(lengths.begin(), lengths.end(), 100);
  lengths[2] = 900;  // one in each round; the other that is put off is its last
  lengths[12] = 900;
  PromptRounds rounds(tail(1.25), 8, 2);
  for (int i = 0; i < 4; ++i) {
    CHECK(rounds.next().kind == RoundKind::kShort);
    CHECK(rounds.next().prompts.size() == 10);
    CHECK(play(rounds, lengths).size() == 8);
  }
  CHECK(rounds.waiting() == std::vector<std::int64_t>{2, 9, 12, 19, 28, 29, 38, 39});
  const Round last = rounds.next();
  CHECK(last.kind == RoundKind::kLong);
  CHECK_FALSE(last.is_race);
  CHECK(last.prompts == rounds.waiting());
  rounds.conclude(last, std::vector<int>(8, 10));
  CHECK(rounds.waiting().empty());
  CHECK(rounds.next().prompts.front() == 40);
}

TEST_CASE("each prompt of the stream is kept once") {
  RandomStream random(3, RandomPurpose::kTest, 0, 0);
  for (int run = 0; run < 300; ++run) {
    const int prompts = static_cast<int>(random.between(1, 9));
    PromptRounds rounds(tail(1.0 + 0.125 * static_cast<double>(random.below(12)),
                             1.0 + 0.5 * static_cast<double>(random.below(3))),
                        prompts, static_cast<int>(random.between(1, 3)));
    std::vector<int> lengths(1000);
    for (int& length : lengths) length = static_cast<int>(random.between(1, 50));
    std::map<std::int64_t, int> times;
    for (int i = 0; i < 30; ++i) {
      const std::int64_t before = rounds.begun();
      const auto kept = play(rounds, lengths);
      REQUIRE(std::ssize(kept) == prompts);
      REQUIRE(std::is_sorted(rounds.waiting().begin(), rounds.waiting().end()));
      REQUIRE(std::ssize(rounds.waiting()) < 2 * 8 * prompts);
      REQUIRE(rounds.begun() >= before);
      for (const std::int64_t number : kept) ++times[number];
    }
    for (const std::int64_t number : rounds.waiting()) ++times[number];
    REQUIRE(std::ssize(times) == rounds.begun());
    REQUIRE(times.rbegin()->first == rounds.begun() - 1);
    for (const auto& [number, count] : times) REQUIRE(count == 1);
  }
}

TEST_CASE("what is started is a multiple of what is kept, rounded up") {
  const Round round = PromptRounds(tail(1.25, 1.5), 3, 3).next();
  CHECK(round.prompts.size() == 4);
  CHECK(round.samples == 5);
  CHECK((round.goal.groups == 3 && round.goal.samples == 3));
  CHECK(PromptRounds(tail(1.1), 10, 3).next().prompts.size() == 11);
  const Round one = PromptRounds(tail(1.0), 3, 3).next();
  CHECK((one.prompts.size() == 3 && one.samples == 3));
}

TEST_CASE("a prompt has the random numbers of the plain run, and a copy takes a round back") {
  PromptRounds rounds(tail(1.5), 4, 2);
  CHECK((rounds.key(0).iteration == 1 && rounds.key(0).ordinal == 0));
  CHECK((rounds.key(11).iteration == 3 && rounds.key(11).ordinal == 3));
  const PromptRounds before = rounds;
  play(rounds, std::vector<int>(20, 5));
  CHECK(rounds.begun() == 6);
  rounds = before;
  CHECK(rounds.begun() == 0);
}

TEST_CASE("if nothing is put off any more, those that wait come next") {
  PromptRounds rounds(tail(0.0), 4, 2);
  CHECK(rounds.begins_period());
  CHECK(rounds.prompts_factor() == 1.0);
  rounds.set_prompts_factor(1.5);
  play(rounds, std::vector<int>(20, 5));
  CHECK_FALSE(rounds.begins_period());
  CHECK(rounds.waiting() == std::vector<std::int64_t>{4, 5});
  rounds.set_prompts_factor(1.0);
  const Round round = rounds.next();
  CHECK(round.kind == RoundKind::kLong);
  CHECK(round.prompts == std::vector<std::int64_t>{4, 5, 6, 7});
  play(rounds, std::vector<int>(20, 5));
  CHECK(rounds.waiting().empty());
  CHECK(rounds.next().prompts.front() == 8);
  CHECK(rounds.begun() == 8);
}

TEST_CASE("without long rounds a period is a few rounds") {
  PromptRounds rounds(tail(0.0), 4, 2);
  int periods = 0;
  for (int i = 0; i < 12; ++i) {
    periods += rounds.begins_period() ? 1 : 0;
    play(rounds, std::vector<int>(100, 5));
  }
  CHECK(periods == 3);
}

TEST_CASE("rounds go on where they were saved") {
  PromptRounds rounds(tail(1.5), 4, 2);
  for (int i = 0; i < 2; ++i) play(rounds, std::vector<int>(20, 5));
  PromptRounds other(tail(1.5), 4, 2);
  other.load(rounds.save());
  CHECK(other.waiting() == rounds.waiting());
  CHECK(other.next().prompts == rounds.next().prompts);
  CHECK(other.next().kind == RoundKind::kLong);
  std::string damaged = rounds.save();
  damaged.pop_back();
  CHECK_THROWS(other.load(damaged));
  CHECK_THROWS_WITH(other.load(rounds.save() + std::string(8, '\0')), ContainsSubstring("damaged"));
  other.begin_at(40);
  CHECK(other.next().kind == RoundKind::kShort);
  CHECK(other.next().prompts.front() == 40);
}

TEST_CASE("from the second pass on, the longest prompts of the pass before are put off") {
  constexpr int kItems = 12;
  const auto item = [](std::int64_t number) { return number * 5 % kItems; };
  const RoundOptions options{RoundMode::kPredicted, 1.5, 1.0};
  PromptRounds rounds(options, 4, 2, kItems, item);
  std::vector<int> lengths;  // by number: those of an item are alike
  for (int n = 0; n < 48; ++n) lengths.push_back(10 + 20 * static_cast<int>(item(n)));
  for (int i = 0; i < 3; ++i) {
    CHECK(rounds.next().kind == RoundKind::kPlain);
    CHECK(rounds.next().prompts.size() == 4);
    play(rounds, lengths);
  }
  CHECK(rounds.begun() == 12);
  PromptRounds saved(options, 4, 2, kItems, item);
  saved.load(rounds.save());
  const Round round = saved.next();
  CHECK(round.kind == RoundKind::kShort);
  CHECK_FALSE(round.is_race);
  CHECK(round.samples == 2);
  // Items 0, 5, 10, 3, 8, 1 of numbers 12 to 17.
  CHECK(round.prompts == std::vector<std::int64_t>{12, 13, 15, 17});
  CHECK(round.put_off == std::vector<std::int64_t>{14, 16});
  play(saved, lengths);
  CHECK(saved.waiting() == round.put_off);
  play(saved, lengths);
  CHECK(saved.next().kind == RoundKind::kLong);
  CHECK(saved.next().prompts.size() == 4);
  PromptRounds others(options, 4, 2, kItems + 1, item);
  CHECK_THROWS_WITH(others.load(rounds.save()), ContainsSubstring("Data/Prompts has 13"));
  // What never comes again cannot be predicted.
  PromptRounds endless(options, 4, 2);
  for (int i = 0; i < 6; ++i) {
    CHECK(endless.next().kind == RoundKind::kPlain);
    play(endless, lengths);
  }
}

TEST_CASE("multiples below one and beyond reason are refused") {
  CHECK(tail(1.25, 1).problems().empty());
  for (const double wrong : {0.9, 8.5, -1.0}) {
    REQUIRE(tail(wrong).problems().size() == 1);
    CHECK_THAT(tail(wrong).problems().front(), ContainsSubstring("Rollout/Tail Prompts"));
    CHECK_THAT(tail(1.25, wrong).problems().at(0), ContainsSubstring("Rollout/Tail Samples"));
  }
}
