// SPDX-License-Identifier: Apache-2.0
#include "draft/EndOrder.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "base/Random.hpp"
#include "draft/MadeUpSequence.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Approx;

namespace {

// By going through who gets to his limit and who does not.
std::vector<double> enumerated(const std::vector<Runner>& runners) {
  const auto n = runners.size();
  std::vector<double> chances(n, 0.0);
  for (std::size_t set = 0; set < (std::size_t{1} << n); ++set) {
    double probability = 1;
    std::size_t last = n;
    for (std::size_t i = 0; i < n; ++i) {
      const bool gets_there = (set >> i) % 2 == 1;
      probability *= gets_there ? runners[i].reaches_limit : 1 - runners[i].reaches_limit;
      if (gets_there && (last == n || runners[i].steps() > runners[last].steps())) last = i;
    }
    for (std::size_t i = 0; i < n; ++i)
      chances[i] += last == n ? probability / static_cast<double>(n) : last == i ? probability : 0;
  }
  return chances;
}

std::vector<double> chances_of(const std::vector<Runner>& runners) {
  const EndChances chances(runners);
  std::vector<double> list;
  for (std::size_t i = 0; i < runners.size(); ++i) list.push_back(chances.is_last(i));
  return list;
}

// The worth of all in a step.
std::vector<double> worths(EndOrder& order, const std::vector<DraftAsk>& asks, Queue queue,
                           const Endings& before) {
  order.begin_step(asks, queue, before);
  std::vector<double> worths;
  for (const DraftAsk& ask : asks) worths.push_back(order.worth(ask.sequence->id));
  return worths;
}

// A response of `length` tokens whose limit is 100.
Sequence at(int sample, int length) {
  Sequence s = sequence(0, sample, {1, 2}, std::vector<std::int32_t>(length, 3));
  s.max_new_tokens = 100;
  return s;
}

Endings all_at_limit() {
  Endings endings;
  for (int i = 0; i < 1000; ++i) endings.count(100, FinishReason::kLength);
  return endings;
}

}  // namespace

TEST_CASE("chances to end last are those of all cases") {
  const CounterRandom random(3);
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    std::vector<Runner> runners;
    for (std::uint64_t i = 0; i < 1 + trial % 7; ++i) {
      const auto draw = [&](std::uint64_t what) {
        return random.uniform({RandomPurpose::kTest, trial, i, what});
      };
      // Ten steps apart, so that no two end at about the same time.
      runners.push_back({10.0 * static_cast<double>((i * 5 + trial) % 7), 1, draw(0)});
    }
    const std::vector<double> found = chances_of(runners), expected = enumerated(runners);
    for (std::size_t i = 0; i < runners.size(); ++i) CHECK(found[i] == Approx(expected[i]));
    CHECK(std::accumulate(found.begin(), found.end(), 0.0) == Approx(1.0));
  }
}

TEST_CASE("sequences that end at about the same time are waited for in turns, or together") {
  const auto chances = [](double steps) {
    return chances_of({{steps, 1, 1}, {steps - 1, 1, 1}, {steps / 2, 1, 1}});
  };
  // Within a step, the last one is as often alone as not: 1/2 / (1/2 + 1) of two.
  CHECK(chances(10)[0] == Approx(1.0 / 3));
  CHECK(chances(10)[1] == Approx(1.0 / 3));
  CHECK(chances(10)[2] == 0);
  // Where they may be many steps apart in the end, hardly ever at the same time.
  CHECK(chances(6400)[0] == Approx(0.5).margin(0.01));
  CHECK(chances_of({{100, 1, 0}, {99, 1, 0}, {50, 1, 0}, {1, 1, 0}}) ==
        std::vector<double>(4, 0.25));
}

TEST_CASE("a token is worth less if others have come early before it") {
  // Five steps behind the other, at two tokens a step ten tokens.
  const std::vector<Runner> runners{{40, 0.5, 1}, {15, 1, 1}};
  const auto chance = [&](int tokens_ahead) {
    return EndChances(runners).is_last(0, tokens_ahead);
  };
  CHECK(chance(0) == 1);
  CHECK(chance(7) == 1);
  CHECK(chance(9) == Approx(1.0 / 3));
  CHECK(chance(12) == Approx(1.0 / 3));
  CHECK(chance(13) == 0);
  // Ahead of others that are later now, and of itself.
  const std::vector<Runner> three{{40, 1, 0.5}, {30, 1, 0.5}, {10, 1, 0.5}};
  const double none = 0.125 / 3;
  CHECK(EndChances(three).is_last(0) == Approx(0.5 + none));
  CHECK(EndChances(three).is_last(0, 20) == Approx(0.25 + none));
  CHECK(EndChances(three).is_last(0, 35) == Approx(0.125 + none));
  CHECK(EndChances(three).is_last(1, 25) == Approx(0.125 + none));
}

TEST_CASE("who is behind is worth drafts, unless others wait for a place") {
  EndOrder order;
  const Sequence ahead = at(0, 50), behind = at(1, 30), other = at(2, 30);
  const std::vector<DraftAsk> asks{{&ahead, 9}, {&behind, 9}, {&other, 9}};
  CHECK(worths(order, asks, Queue::kWaiting, all_at_limit()) == std::vector<double>(3, 1.0));
  const std::vector<double> found = worths(order, asks, Queue::kEmpty, all_at_limit());
  CHECK(found[0] < 0.01);
  // Of two, each ends last, alone, in a third of all cases or some more.
  CHECK(found[1] > 1.0);
  CHECK(found[1] < 1.1);
  CHECK(found[2] == found[1]);
  CHECK(order.worth(behind.id) == found[1]);
  CHECK(order.worth({9, 9}) == 1);
  // Where responses end by themselves, each may be the last one.
  Endings by_themselves;
  for (int i = 0; i < 1000; ++i) by_themselves.count(100, FinishReason::kEos);
  for (const double worth : worths(order, asks, Queue::kEmpty, by_themselves))
    CHECK(worth == Approx(1.0).margin(0.01));
}

TEST_CASE("who gets along faster than others is not waited for") {
  EndOrder order;
  const Sequence fast = at(0, 30), slow = at(1, 30);
  const std::vector<DraftAsk> asks{{&fast, 9}, {&slow, 9}};
  for (int step = 0; step < 4; ++step) {
    worths(order, asks, Queue::kEmpty, all_at_limit());
    order.observe(fast.id, 3);
    order.observe(slow.id, 1);
  }
  const std::vector<double> found = worths(order, asks, Queue::kEmpty, all_at_limit());
  CHECK(found[0] < 0.01);
  CHECK(found[1] == Approx(2.0).margin(0.01));
  // Other sequences, or another group: nothing is known of them.
  order.restart();
  const std::vector<double> anew = worths(order, asks, Queue::kEmpty, all_at_limit());
  CHECK(anew[0] == anew[1]);
}

TEST_CASE("endings are counted by how far responses came, summed and faded") {
  Endings endings, more;
  CHECK(endings.reaches_limit(1) == 0.5);
  endings.count(4, FinishReason::kEos);
  endings.count(100, FinishReason::kLength);
  more.count(70, FinishReason::kLength);
  endings.add(more);
  CHECK(endings.reaches_limit(1) == 3.0 / 5);
  CHECK(endings.reaches_limit(8) == 3.0 / 4);
  CHECK(endings.reaches_limit(200) == 0.5);
  endings.count(8, FinishReason::kAbort);
  CHECK(endings.reaches_limit(8) == 3.0 / 4);
  endings.fade();
  CHECK(endings.reaches_limit(8) == 2.0 / 3);
}
