// SPDX-License-Identifier: Apache-2.0
#include "planner/Race.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <vector>

#include "base/Random.hpp"

using namespace taper;

namespace {

struct Response {
  ResponseId id;
  int length = 0;
};

// As the definition says it, of all final lengths.
std::vector<ResponseId> brute_force(const std::vector<Response>& all, const RaceGoal& goal) {
  std::map<std::int64_t, std::vector<std::pair<int, int>>> groups;
  for (const Response& r : all) groups[r.id.prompt].emplace_back(r.length, r.id.sample);
  std::vector<std::pair<int, std::int64_t>> order;
  for (auto& [prompt, members] : groups) {
    std::sort(members.begin(), members.end());
    order.emplace_back(members[goal.samples - 1].first, prompt);
  }
  std::sort(order.begin(), order.end());
  std::vector<ResponseId> kept;
  for (int i = 0; i < goal.groups; ++i)
    for (int k = 0; k < goal.samples; ++k)
      kept.push_back({order[i].second, groups[order[i].second][k].second});
  std::sort(kept.begin(), kept.end());
  return kept;
}

// The race as several replicas run it: each knows of its own responses at once, and of the others'
// some steps later. Returns what ended, in steps; responses that were given up are not in it.
struct Played {
  std::vector<Response> ended;
  int steps = 0;
};
Played play(const std::vector<Response>& all, const RaceGoal& goal, int replicas, int most_delay,
            RandomStream& random) {
  std::vector<Race> races(replicas, Race(goal));
  std::vector<bool> over(all.size(), false);
  std::vector<int> started(all.size());  // they do not run in step
  for (int& step : started) step = static_cast<int>(random.below(3));
  std::multimap<int, std::pair<int, Response>> news;  // by the step of its arrival: at a replica
  Played played;
  for (std::size_t left = all.size(); left > 0; ++played.steps) {
    const int now = played.steps;
    for (auto at = news.begin(); at != news.end() && at->first <= now; at = news.erase(at))
      races[at->second.first].ended(at->second.second.id, at->second.second.length);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (over[i] || now <= started[i]) continue;
      const int length = now - started[i], mine = static_cast<int>(i) % replicas;
      if (length == all[i].length) {
        races[mine].ended(all[i].id, length);
        for (int r = 0; r < replicas; ++r)
          if (r != mine)
            news.emplace(now + 1 + static_cast<int>(random.below(most_delay + 1)),
                         std::pair(r, all[i]));
        played.ended.push_back(all[i]);
      } else if (length < races[mine].bound(all[i].id.prompt)) {
        continue;
      }
      over[i] = true;
      --left;
    }
  }
  return played;
}

std::vector<ResponseId> kept_of(const std::vector<Response>& ended, const RaceGoal& goal) {
  Race race(goal);
  for (const Response& r : ended) race.ended(r.id, r.length);
  return race.kept();
}

}  // namespace

TEST_CASE("a round keeps what all final lengths say, whatever its replicas knew and when") {
  RandomStream random(7, RandomPurpose::kTest, 0, 0);
  for (int table = 0; table < 100000; ++table) {
    const int groups = static_cast<int>(random.between(1, 6)),
              samples = static_cast<int>(random.between(1, 5));
    const RaceGoal goal{static_cast<int>(random.between(1, groups)),
                        static_cast<int>(random.between(1, samples))};
    // Few different lengths: there are many ties.
    const int longest = static_cast<int>(random.between(1, table % 2 == 0 ? 4 : 30));
    std::vector<Response> all;
    for (int g = 0; g < groups; ++g)
      for (int k = 0; k < samples; ++k)
        all.push_back({{g, k}, static_cast<int>(random.between(1, longest))});
    const auto expected = brute_force(all, goal);
    const Played played =
        play(all, goal, static_cast<int>(random.between(1, 3)), table % 9, random);
    REQUIRE(kept_of(played.ended, goal) == expected);
  }
}

TEST_CASE("a round in which everybody knows all ends with its last kept response") {
  RandomStream random(8, RandomPurpose::kTest, 0, 0);
  const RaceGoal goal{4, 3};
  std::vector<Response> all;
  for (int g = 0; g < 6; ++g)
    for (int k = 0; k < 4; ++k) all.push_back({{g, k}, static_cast<int>(random.between(1, 1000))});
  const Played played = play(all, goal, 1, 0, random);
  int longest = 0;
  for (const ResponseId& id : brute_force(all, goal))
    for (const Response& r : all)
      if (r.id == id) longest = std::max(longest, r.length);
  CHECK(played.steps <= longest + 3);  // they start up to two steps late
  CHECK(played.ended.size() < all.size());
}

TEST_CASE("bounds only fall, and nothing is kept before enough groups are complete") {
  Race race({2, 2});
  CHECK(race.cutoff() == Race::kNoBound);
  race.ended({0, 0}, 9);
  race.ended({0, 2}, 30);
  CHECK(race.bound(0) == 30);  // any other response of the group must be shorter
  CHECK(race.bound(1) == Race::kNoBound);
  CHECK(race.kept().empty());
  race.ended({1, 0}, 20);
  race.ended({1, 1}, 21);
  CHECK(race.cutoff() == 30);
  CHECK(race.bound(1) == 21);
  race.ended({0, 1}, 10);
  CHECK(race.cutoff() == 21);
  CHECK(race.bound(5) == 21);
  CHECK(race.kept() == std::vector<ResponseId>{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
}

TEST_CASE("equal lengths are kept by their numbers, and a goal of all keeps all") {
  Race race({1, 1});
  race.ended({3, 1}, 5);
  race.ended({3, 0}, 5);
  race.ended({2, 1}, 5);
  CHECK(race.kept() == std::vector<ResponseId>{{2, 1}});
  Race all({2, 1});
  all.ended({0, 0}, 7);
  all.ended({1, 0}, 8);
  CHECK(all.kept() == std::vector<ResponseId>{{0, 0}, {1, 0}});
}
