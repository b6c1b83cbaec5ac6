// SPDX-License-Identifier: Apache-2.0
#include "draft/TextGuesses.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "draft/MadeUpSequence.hpp"

using namespace taper;
using namespace taper::test;

namespace {

SamplingOptions sampling(float temperature) {
  SamplingOptions o;
  o.temperature = temperature;
  o.seed = 5;
  return o;
}

std::vector<Guess> guesses_for(TextGuesses& texts, const Sequence& s) {
  texts.read_past();
  texts.read_sequences();
  std::vector<Guess> guesses;
  texts.guess(s.id, s.tokens, s.length(), guesses);
  return guesses;
}

}  // namespace

TEST_CASE("guesses of each source and level say what speaks for them") {
  TextGuesses texts(0);
  texts.begin(sampling(1.0f));
  const std::vector<std::int32_t> prompt{1, 2, 3, 4};
  const Sequence other = sequence(0, 1, prompt, {5, 6, 7, 20}),
                 mine = sequence(0, 0, prompt, {5, 6, 7}),
                 stranger = sequence(1, 0, {9, 9, 9, 9}, {5, 6, 7, 30});
  for (const Sequence* s : {&other, &mine, &stranger}) texts.follow(*s);
  const std::vector<Guess> guesses = guesses_for(texts, mine);
  // Of all texts, the prompt's and nothing of its own: levels of 3, and of 4 and 6 where the other
  // sample's context goes on.
  int run = 0, prompt_level = -1;
  for (const Guess& g : guesses) {
    CHECK(g.kind.source != DraftSource::kSelf);
    run += g.kind.source == DraftSource::kRun;
    if (g.kind.source == DraftSource::kPrompt) {
      prompt_level = std::max(prompt_level, g.kind.level);
      CHECK(g.token == 20);
    }
  }
  CHECK(run > 0);
  CHECK(GuessKind::kMatches[prompt_level] == 6);
  CHECK(guesses.back().kind.source == DraftSource::kPrompt);
  CHECK(std::any_of(guesses.begin(), guesses.end(), [](const Guess& g) { return g.token == 30; }));
}

TEST_CASE("greedy guesses are the newest of the longest match") {
  TextGuesses texts(0);
  texts.begin(sampling(0.0f));
  const Sequence s = sequence(0, 0, {1}, {7, 8, 9, 20, 5, 7, 8, 9, 21, 5, 7, 8, 9});
  texts.follow(s);
  const std::vector<Guess> guesses = guesses_for(texts, s);
  REQUIRE_FALSE(guesses.empty());
  for (const Guess& g : guesses) {
    CHECK(g.kind.evidence == Evidence::kNewest);
    CHECK(g.token == 21);
  }
  CHECK(guesses.back().kind.source == DraftSource::kSelf);
  texts.forget_sequences();
  const Sequence other = sequence(1, 0, {3}, {7, 8, 9});
  texts.follow(other);
  CHECK(guesses_for(texts, other).empty());
}

TEST_CASE("what earlier generations take is bounded, and the newest stay") {
  constexpr std::int64_t kSmall = 200000;
  TextGuesses texts(kSmall);
  CHECK(texts.room() > 0);
  std::vector<std::int32_t> last;
  for (int generation = 0; generation < 20; ++generation) {
    texts.begin(sampling(1.0f));
    std::vector<Completion> responses(4);
    for (int i = 0; i < 4; ++i) {
      responses[i].id = {i, 0};
      responses[i].prompt = {1, 2, 3, i};
      for (int k = 0; k < 500; ++k)
        responses[i].response.push_back(10 + (generation * 7919 + i * 104729 + k * k) % 5000);
    }
    last = responses[3].response;
    texts.learn(responses);
    CHECK(texts.past_bytes() <= kSmall);
    CHECK(texts.past_bytes() > kSmall / 8);
  }
  const Sequence s = sequence(3, 0, {1, 2, 3, 3}, {last.begin(), last.begin() + 100});
  texts.follow(s);
  CHECK(guesses_for(texts, s).back().token == last[100]);
  TextGuesses none(0);
  CHECK(none.room() == 0);
  std::vector<Completion> responses(1);
  responses[0].prompt = {1, 2, 3};
  responses[0].response = last;
  none.learn(responses);
  CHECK(none.past_bytes() == 0);
}

TEST_CASE("of responses the last ones that have so many tokens") {
  std::vector<Completion> all(3);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].prompt.resize(2);
    all[i].response.resize(10 * (i + 1));
  }
  const auto count = [&](std::int64_t tokens) { return last_of(all, tokens).size(); };
  CHECK(count(0) == 0);
  CHECK(count(31) == 0);
  CHECK(count(32) == 1);
  CHECK(count(53) == 1);
  CHECK(count(54) == 2);
  CHECK(count(1000) == 3);
  CHECK(last_of(all, 32).front().response.size() == 30);
}

TEST_CASE("what is kept does not depend on who has read it") {
  constexpr std::int64_t kSmall = 200000;
  TextGuesses one(kSmall), other(kSmall);
  for (int generation = 0; generation < 40; ++generation) {
    std::vector<Completion> responses(3);
    for (int i = 0; i < 3; ++i) {
      responses[i].id = {i, 0};
      responses[i].prompt = {1, 2, 3, generation};
      for (int k = 0; k < 300 + 17 * (generation % 7); ++k)
        responses[i].response.push_back((generation * 7919 + i * 104729 + k * k) % 5000);
    }
    for (TextGuesses* texts : {&one, &other}) {
      texts->begin(sampling(1.0f));
      texts->learn(responses);
    }
    if (generation % 3 == 1) one.read_past();
    REQUIRE(one.past_bytes() == other.past_bytes());
    REQUIRE(one.past_bytes() <= kSmall);
  }
  for (int generation = 0; generation < 40; ++generation) {
    const std::vector<std::int32_t> prompt{1, 2, 3, generation};
    CHECK(one.knows(prompt) == other.knows(prompt));
  }
}
