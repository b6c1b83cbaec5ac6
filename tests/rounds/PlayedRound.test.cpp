// SPDX-License-Identifier: Apache-2.0
#include "rounds/PlayedRound.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace taper;

namespace {

// Response k of prompt `number` of the stream.
int length_of(std::int64_t number, int sample) {
  constexpr int kLengths[4][3] = {{5, 9, 7}, {40, 3, 3}, {8, 8, 8}, {20, 10, 30}};
  return kLengths[number % 4][sample];
}

std::vector<int> ends(const PlayedRound& played) {
  std::vector<int> list;
  for (const Outcome& o : played.trace.outcomes) list.push_back(o.response);
  return list;
}

}  // namespace

TEST_CASE("in a played race, what loses ends where it would be known") {
  Workload like;
  like.max_new_tokens = 50;
  const PlayedRound played =
      play_round({RoundKind::kShort, {4, 5, 6, 7}, {}, 3, {2, 2}, true}, like, 11, length_of);
  // Two of three samples: lengths of groups are 7, 3, 8, 20. Kept: 5 and 4.
  CHECK(played.kept == std::vector<ResponseId>{{0, 0}, {0, 2}, {1, 1}, {1, 2}});
  CHECK(played.longest_kept == std::vector<int>{7, 3, 0, 0});
  CHECK(ends(played) == std::vector<int>{5, 7, 7, 3, 3, 3, 7, 7, 7, 7, 7, 7});
  CHECK(played.trace.outcomes[1].aborted);
  CHECK_FALSE(played.trace.outcomes[0].aborted);
  CHECK(played.trace.outcomes[11].prompt == 11);
  const Workload& work = played.trace.work;
  CHECK((work.sequences == 12 && work.samples == 3 && work.prompt_tokens == 132));
  CHECK((work.surplus.prompts == 2 && work.surplus.samples == 1));
  CHECK(work.max_new_tokens == 50);
}

TEST_CASE("a round that keeps all it starts has all lengths") {
  const PlayedRound played =
      play_round({RoundKind::kLong, {1, 7}, {}, 3, {2, 3}}, {}, 1, length_of);
  CHECK(ends(played) == std::vector<int>{40, 3, 3, 20, 10, 30});
  CHECK(played.kept.size() == 6);
  CHECK(played.longest_kept == std::vector<int>{40, 30});
  CHECK(played.trace.work.surplus.is_none());
}
