// SPDX-License-Identifier: Apache-2.0
#include "rollout/RaceNews.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::test::TestRanks;

namespace {

using Words = std::array<std::int64_t, RaceNews::kWords>;

}  // namespace

TEST_CASE("another leader hears of everything, a few responses at a time and once") {
  RaceNews here({1, 100}), there({1, 100});
  for (int k = 0; k < 100; ++k) here.ended({0, k}, 1 + k);
  CHECK(here.race().cutoff() == 100);
  int posts = 0;
  for (Words words;; ++posts) {
    here.write(words);
    there.read(words);
    if (!there.has_heard()) break;
    there.tell(Group::self());
    CHECK_FALSE(there.has_heard());
  }
  CHECK(posts == 4);  // 32 + 32 + 32 + 4
  CHECK(there.race().kept() == here.race().kept());
}

TEST_CASE("the numbers of a response travel whole, up to their limits") {
  const ResponseId last{(1 << 24) - 1, (1 << 16) - 1};
  RaceNews here({1, 1}), there({1, 1});
  here.ended(last, (1 << 24) - 1);
  Words words;
  here.write(words);
  there.read(words);
  there.tell(Group::self());
  CHECK(there.race().kept() == std::vector<ResponseId>{last});
  CHECK(there.race().cutoff() == (1 << 24) - 1);
  CHECK_THROWS_MATCHES(here.ended({1 << 24, 0}, 1), Error,
                       MessageMatches(ContainsSubstring("set Rollout/Rounds to plain")));
}

TEST_CASE("ranks of a group know what their leader has heard") {
  const TestRanks f;
  RaceNews news({1, 1});
  if (f.ranks.rank() == 0) {
    RaceNews other({1, 1});
    other.ended({3, 1}, 40);
    Words words;
    other.write(words);
    news.read(words);
  }
  news.tell(f.ranks.world());
  CHECK(news.race().cutoff() == 40);
  CHECK_FALSE(news.has_heard());
}

TEST_CASE("before groups change all ranks come to know the same") {
  const TestRanks f;
  const int ranks = f.ranks.size(), rank = f.ranks.rank();
  RaceNews news({ranks, 1});
  news.ended({rank, 0}, 10 + rank);
  Words words;
  news.write(words);  // on its way when the layout changes: told again, and counted once
  news.share(f.ranks.world(), true);
  CHECK(news.race().cutoff() == 10 + ranks - 1);
  CHECK(std::ssize(news.race().kept()) == ranks);
  news.write(words);
  CHECK(words == Words{});  // nothing is left to tell
}
