// SPDX-License-Identifier: Apache-2.0
#include "draft/SuffixIndex.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

using namespace taper;

namespace {

RandomKey key(int prompt, int sample, int iteration = 1) {
  return {RandomPurpose::kTest,
          static_cast<std::uint64_t>(iteration),
          static_cast<std::uint64_t>(prompt),
          static_cast<std::uint64_t>(sample),
          0,
          0};
}

// Few different tokens, so that contexts occur again and again.
std::vector<std::int32_t> random_tokens(RandomStream& random, int count) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>(random.below(3)));
  return tokens;
}

std::uint64_t scope(const IndexedText& text) {
  return text.scopes[static_cast<int>(DraftSource::kPrompt)];
}

struct Found {
  const IndexedText* text;
  int position, match;
  friend bool operator==(const Found&, const Found&) = default;
};

// All texts and the order in which their tokens have come.
struct Corpus {
  std::vector<std::pair<int, int>> arrivals;  // text, position

  // By looking at every token.
  std::vector<Found> find(const SuffixIndex& index, DraftSource source, int of,
                          const std::vector<std::int32_t>& context) const {
    std::vector<Found> found;
    for (auto it = arrivals.rbegin(); it != arrivals.rend(); ++it) {
      const IndexedText& t = index.text(it->first);
      if (source == DraftSource::kSelf && it->first != of) continue;
      if (source == DraftSource::kPrompt && scope(t) != scope(index.text(of))) continue;
      int match = 0;
      while (match < std::min({it->second, static_cast<int>(context.size()),
                               SuffixIndex::kLongestMatch}) &&
             t.tokens[it->second - 1 - match] == context[context.size() - 1 - match])
        ++match;
      if (match >= SuffixIndex::kShortestMatch) found.push_back({&t, it->second, match});
    }
    return found;
  }
};

}  // namespace

TEST_CASE("an index finds what looking at every token finds") {
  RandomStream random(3, RandomPurpose::kTest, 0, 0);
  SuffixIndex index(DraftSource::kSelf);
  Corpus corpus;
  for (int t = 0; t < 6; ++t) {
    RandomStream prompt_random(t / 2, RandomPurpose::kTest, 0, 7);
    const auto prompt = random_tokens(prompt_random, 9);
    index.add(key(t / 2, t % 2), prompt);
    if (t % 2 == 0)
      for (int p = SuffixIndex::kShortestMatch; p < 9; ++p) corpus.arrivals.push_back({t, p});
  }
  int asked = 0, exact = 0;
  for (int step = 0; step < 3000; ++step) {
    const int text = static_cast<int>(random.below(6));
    const auto news = random_tokens(random, 1 + static_cast<int>(random.below(3)));
    for (std::size_t i = 0; i < news.size(); ++i)
      corpus.arrivals.push_back({text, static_cast<int>(index.text(text).tokens.size() + i)});
    index.append(text, news);
    if (random.below(8) > 0) continue;  // what has come since is read together
    for (const auto source : {DraftSource::kSelf, DraftSource::kPrompt, DraftSource::kRun}) {
      const std::vector<std::int32_t>& context = index.text(text).tokens;
      std::vector<IndexedPlace> places;
      index.read();
      index.find(source, index.text(text), IndexedContext(context), places);
      auto wanted = corpus.find(index, source, text, context);
      std::vector<Found> found;
      for (const IndexedPlace& p : places) {
        REQUIRE(p.token() == p.text->tokens[p.position]);
        found.push_back({p.text, p.position, p.match});
      }
      // Newest first; fewer only if other contexts of the same hash are among those looked at.
      auto at = wanted.begin();
      for (const Found& f : found) {
        at = std::find(at, wanted.end(), f);
        REQUIRE(at != wanted.end());
      }
      const int most = SuffixIndex::kPlaces[static_cast<std::size_t>(source)];
      wanted.resize(std::min<std::size_t>(wanted.size(), most));
      ++asked;
      exact += found == wanted ? 1 : 0;
    }
  }
  CHECK(exact > asked * 9 / 10);
}

TEST_CASE("prompts and iterations tell texts apart") {
  SuffixIndex index(DraftSource::kSelf);
  const std::vector<std::int32_t> prompt{1, 2, 3, 4}, other{1, 2, 3, 5};
  const int a = index.add(key(0, 0), prompt), b = index.add(key(0, 0, 2), prompt),
            c = index.add(key(1, 0), other);
  for (const int text : {a, b, c})
    index.append(text, std::vector<std::int32_t>{7, 8, 9, 10 + text});
  std::vector<IndexedPlace> places;
  const std::vector<std::int32_t> context{7, 8, 9};
  const auto found = [&](DraftSource source, int of) {
    places.clear();
    index.read();
    index.find(source, index.text(of), IndexedContext(context), places);
    std::vector<int> tokens;
    for (const IndexedPlace& p : places) tokens.push_back(p.token());
    return tokens;
  };
  CHECK(index.has_prompt(prompt));
  CHECK_FALSE(index.has_prompt(std::vector<std::int32_t>{1, 2, 3}));
  CHECK(found(DraftSource::kSelf, a) == std::vector<int>{10});
  CHECK(found(DraftSource::kSelf, b) == std::vector<int>{11});
  CHECK(found(DraftSource::kPrompt, a) == std::vector<int>{11, 10});
  CHECK(found(DraftSource::kPrompt, c) == std::vector<int>{12});
  CHECK(found(DraftSource::kRun, c) == std::vector<int>{12, 11, 10});
  // The prompt, once for both of its texts.
  places.clear();
  index.read();
  index.find(DraftSource::kPrompt, index.text(b),
             IndexedContext(std::vector<std::int32_t>{1, 2, 3}), places);
  REQUIRE(places.size() == 1);
  CHECK(places[0].token() == 4);
  // Shorter contexts are not asked about.
  places.clear();
  index.read();
  index.find(DraftSource::kRun, index.text(b), IndexedContext(std::vector<std::int32_t>{8, 9}),
             places);
  CHECK(places.empty());
  SuffixIndex shared(DraftSource::kPrompt);
  shared.append(shared.add(key(0, 0), prompt), std::vector<std::int32_t>{7, 8, 9, 10});
  shared.read();
  shared.find(DraftSource::kSelf, index.text(a), IndexedContext(context), places);
  CHECK(places.empty());
  shared.read();
  shared.find(DraftSource::kPrompt, index.text(a), IndexedContext(context), places);
  CHECK(places.size() == 1);
}

TEST_CASE("memory is counted, and given back") {
  SuffixIndex index(DraftSource::kPrompt);
  CHECK(index.bytes() == 0);
  const int text = index.add(key(0, 0), std::vector<std::int32_t>{1, 2, 3});
  index.append(text, std::vector<std::int32_t>(10000, 4));
  CHECK(index.tokens() == 10000);
  const auto is_plausible = [&] {
    return index.bytes() > 10000 * 20 && index.bytes() < 10000 * 60;
  };
  CHECK(is_plausible());
  // The same before and after.
  const std::int64_t bytes = index.bytes();
  index.read();
  CHECK(index.bytes() == bytes);
  index.clear();
  CHECK(index.bytes() == 0);
  CHECK(index.texts() == 0);
}
