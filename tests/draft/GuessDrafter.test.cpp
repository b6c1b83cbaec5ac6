// SPDX-License-Identifier: Apache-2.0
#include "draft/GuessDrafter.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>

#include "base/ReplicaSnapshot.hpp"
#include "draft/MadeUpSequence.hpp"
#include "engine/Sampler.hpp"

using namespace taper;
using namespace taper::test;

namespace {

using Drafts = std::vector<std::vector<std::int32_t>>;

const Group& alone() {
  static const Group group = Group::self();
  return group;
}

constexpr std::int64_t kRoom = std::int64_t{64} << 20;

SamplingOptions sampling(float temperature = 1.0f) {
  SamplingOptions o;
  o.temperature = temperature;
  o.seed = 5;
  o.iteration = 2;
  return o;
}

// What follows a context of a made-up model: the token that its random number gives, of a fixed
// distribution over kChoices ids.
constexpr int kChoices = 12;
std::int32_t draw(std::uint64_t context, const ResponseId& id, int position, double sharpness) {
  const CounterRandom random(5);
  std::vector<double> weights;
  double sum = 0;
  for (int c = 0; c < kChoices; ++c) {
    const double u = random.uniform({RandomPurpose::kTest, 9, context, 0, 0, std::uint64_t(c)});
    weights.push_back(std::pow(u, sharpness));
    sum += weights.back();
  }
  double at = sum * 0x1p-64 * static_cast<double>(random.bits(token_key(sampling(), id, position)));
  for (int c = 0; c < kChoices; ++c)
    if ((at -= weights[c]) < 0) return c;
  return kChoices - 1;
}

// A draft model on each rank that has no room for any context.
class NoRoomModel : public GuessModel {
 public:
  bool is_local() const override { return true; }
  bool is_part_of_step() const override { return false; }
  void keep(std::span<const DraftAsk>) override {}
  std::vector<DrawnToken> draw(std::span<const DraftContext> contexts,
                               const SamplingOptions&) override {
    return std::vector<DrawnToken>(contexts.size(), DrawnToken{-1});
  }
  int rows_read() const override { return 0; }
};

}  // namespace

TEST_CASE("all ranks know what is expected of a draft, whichever of them makes it") {
  const Group world = Group::world(MPI_COMM_WORLD);
  NoRoomModel model;
  GuessDrafter drafter(4, kRoom);
  drafter.set_model(&model);
  drafter.begin(sampling(), world, {kRatioOne / 4});
  const Sequence first = sequence(0, 0, {1, 2}, {5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7}),
                 second = sequence(1, 0, {1, 2}, {4, 3, 2, 1, 4, 3, 2});
  // One is left, of the first rank or, if there are two, of the second one.
  for (const Sequence* left : {&first, &second}) {
    drafter.propose(std::vector<DraftAsk>{{&first, 9}, {&second, 9}}, {99});
    const Drafts drafts = drafter.propose(std::vector<DraftAsk>{{left, 9}}, {99});
    REQUIRE_FALSE(drafts.front().empty());
    // A half of the first token, a quarter of the next one.
    CHECK(drafter.expected_value() > 0.7);
    CHECK(drafter.expected_value() < 0.8);
  }
}

TEST_CASE("all ranks know how far a draft would reach, whichever of them looks it up") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const Sequence first = sequence(0, 0, {1, 2}, {5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7}),
                 second = sequence(1, 0, {1, 2}, {4, 3, 2, 1, 4, 3, 2});
  for (const Sequence* left : {&first, &second}) {
    NoRoomModel model;
    GuessDrafter drafter(4, kRoom);
    drafter.explore();
    drafter.set_model(&model);
    // No guess is so probable that it is worth its row; the first is half probable.
    drafter.begin(sampling(), world, {DraftLimits::kNothing - 1});
    drafter.propose(std::vector<DraftAsk>{{&first, 9}, {&second, 9}}, {99});
    CHECK(drafter.propose(std::vector<DraftAsk>{{left, 9}}, {99}) == Drafts{{}});
    drafter.observe(*left, 0, std::vector<std::int32_t>{8});
    const DraftShares reach = drafter.reach();
    CHECK(reach.drafted[0] == 255);
    CHECK(reach.accepted[0] > 120);
    CHECK(reach.accepted[0] < 135);
    CHECK(reach.drafted[1] == 0);
  }
}

TEST_CASE("a sequence that repeats itself is guessed, as far as it may be") {
  GuessDrafter drafter(6, kRoom);
  drafter.begin(sampling(), alone(), {});
  const Sequence s = sequence(0, 0, {1, 2}, {5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7});
  CHECK(drafter.propose(std::vector<DraftAsk>{{&s, 100}}, {100}) == Drafts{{8, 5, 6, 7, 8, 5}});
  CHECK(drafter.propose(std::vector<DraftAsk>{{&s, 2}}, {100}) == Drafts{{8, 5}});
  CHECK(drafter.propose(std::vector<DraftAsk>{{&s, 100}}, {3}) == Drafts{{8, 5, 6}});
  CHECK(drafter.propose(std::vector<DraftAsk>{{&s, 0}}, {100}) == Drafts{{}});
  CHECK(drafter.propose(std::vector<DraftAsk>{{&s, -1}}, {100}) == Drafts{{}});
  // Without experience a guess is right with one half.
  drafter.set_limits({kRatioOne / 2});
  CHECK(drafter.propose(std::vector<DraftAsk>{{&s, 100}}, {100}) == Drafts{{8}});
  drafter.set_limits({kRatioOne / 2 + 1});
  CHECK(drafter.propose(std::vector<DraftAsk>{{&s, 100}}, {100}) == Drafts{{}});
}

TEST_CASE("no draft goes on behind the end of a response") {
  GuessDrafter drafter(6, kRoom);
  const std::vector<std::int32_t> ends{3, 6};
  drafter.begin(sampling(), alone(), {}, WaitsFor::kAll, ends);
  const Sequence s = sequence(0, 0, {1, 2}, {5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7});
  CHECK(drafter.propose(std::vector<DraftAsk>{{&s, 100}}, {100}) == Drafts{{8, 5, 6}});
}

TEST_CASE("responses to the same prompt and of earlier generations are guessed from") {
  GuessDrafter drafter(4, kRoom);
  drafter.begin(sampling(), alone(), {});
  const std::vector<std::int32_t> prompt{1, 2, 3, 4};
  const Sequence ahead = sequence(0, 0, prompt, {9, 8, 7, 6, 5}),
                 behind = sequence(0, 1, prompt, {9}), stranger = sequence(1, 0, {2, 2}, {3, 3});
  const std::vector<DraftAsk> asks{{&ahead, 9}, {&behind, 9}, {&stranger, 9}};
  CHECK(drafter.propose(asks, {99}) == Drafts{{}, {8, 7, 6, 5}, {}});
  Completion done;
  done.id = {0, 0};
  done.prompt = {2, 2};
  done.response = {3, 3, 11, 12, 13};
  drafter.learn(std::vector<Completion>{done}, drafter.finish(), {});
  drafter.begin(sampling(), alone(), {});
  CHECK(drafter.propose(asks, {99}) == Drafts{{}, {8, 7, 6, 5}, {11, 12, 13}});
}

TEST_CASE(
    "a sequence that nobody will wait for is not drafted for, unless others wait for its place") {
  GuessDrafter drafter(4, kRoom);
  drafter.begin(sampling(), alone(), {});
  Endings endings;
  for (int i = 0; i < 1000; ++i) endings.count(40, FinishReason::kLength);
  drafter.learn({}, {}, endings);
  drafter.begin(sampling(), alone(), {kRatioOne / 4});
  Sequence ahead = sequence(0, 0, {1, 2}, {5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7}),
           behind = sequence(1, 0, {1, 2}, {4, 3, 2, 1, 4, 3, 2});
  ahead.max_new_tokens = behind.max_new_tokens = 40;
  const std::vector<DraftAsk> asks{{&ahead, 9}, {&behind, 9}};
  // Half of all guesses are right as far as is known, of two in a row a quarter.
  CHECK(drafter.propose(asks, {99, Queue::kWaiting}) == Drafts{{8, 5}, {1, 4}});
  // The step costs four times the row: what saves it may be less probable.
  CHECK(drafter.propose(asks, {99}) == Drafts{{}, {1, 4}});
  const double expected = drafter.expected_value();
  drafter.observe(ahead, 0, std::vector<std::int32_t>{7});
  drafter.observe(behind, 2, std::vector<std::int32_t>{1, 4, 2});
  CHECK(drafter.accepted_value() > 3);
  // A half and a quarter of two tokens.
  CHECK(expected > 0.99 * 3 / 8 * drafter.accepted_value());
  CHECK(expected < 1.01 * 3 / 8 * drafter.accepted_value());
  // In a race the last ones will not be waited for.
  drafter.begin(sampling(), alone(), {kRatioOne / 4}, WaitsFor::kKept);
  CHECK(drafter.propose(asks, {99}) == Drafts{{8, 5}, {1, 4}});
}

TEST_CASE("sequences that are alike have the threshold itself, unless they end together") {
  GuessDrafter drafter(4, kRoom);
  std::vector<Sequence> sequences;
  for (int i = 0; i < 7; ++i) {
    sequences.push_back(sequence(i, 0, {1, 2}, {5, 6, 7, 8, 5, 6, 7}));
    sequences.back().max_new_tokens = 40;
  }
  std::vector<DraftAsk> asks;
  for (const Sequence& s : sequences) asks.push_back({&s, 9});
  const auto after = [&](FinishReason reason) {
    Endings endings;
    for (int i = 0; i < 100000; ++i) endings.count(40, reason);
    drafter.begin(sampling(), alone(), {kRatioOne / 2});
    drafter.learn({}, {}, endings);
    drafter.begin(sampling(), alone(), {kRatioOne / 2 - 1});
    return drafter.propose(asks, {99});
  };
  // One half is just enough where each may be the last one,
  CHECK(after(FinishReason::kEos) == Drafts(7, {8}));
  // and too little where what one of them gains is lost while others get to their limits.
  CHECK(after(FinishReason::kLength) == Drafts(7));
}

TEST_CASE("who sees the same sequences drafts the same, however they came") {
  GuessDrafter one(8, kRoom), other(8, kRoom);
  one.begin(sampling(), alone(), {});
  other.begin(sampling(), alone(), {});
  std::vector<Sequence> sequences;
  for (int i = 0; i < 8; ++i) sequences.push_back(sequence(i / 4, i % 4, {i / 4, 1, 2, 3}, {}));
  Drafts drafts;
  for (int step = 0; step < 80; ++step) {
    std::vector<DraftAsk> asks;
    for (Sequence& s : sequences) {
      const int length = s.length();
      s.tokens.push_back(
          draw(static_cast<std::uint64_t>(s.tokens[length - 1] * 100 + s.tokens[length - 2]), s.id,
               length, 6));
      asks.push_back({&s, 50});
    }
    drafts = one.propose(asks, {30});
    if (step % 3 == 0) CHECK(other.propose(asks, {30}).size() == asks.size());
  }
  std::int64_t length = 0;
  for (const auto& d : drafts) length += std::ssize(d);
  CHECK(length > 10);
  // After a change of layout, nobody knows more than what the sequences tell.
  std::vector<DraftAsk> asks;
  for (const Sequence& s : sequences) asks.push_back({&s, 50});
  one.restart(alone(), {});
  other.restart(alone(), {});
  CHECK(one.propose(asks, {30}) == other.propose(asks, {30}));
}

TEST_CASE("the nearest random number says more than the most frequent token") {
  // Contexts of three tokens, each with 12 earlier places in other samples of the prompt; then one
  // guess for each context, held against what is drawn.
  constexpr int kContexts = 400, kSamples = 12;
  for (const double sharpness : {3.0, 8.0}) {
    int nearest = 0, majority = 0, newest = 0, most_probable = 0;
    for (int c = 0; c < kContexts; ++c) {
      GuessDrafter drafter(1, kRoom);
      drafter.begin(sampling(), alone(), {});
      const std::vector<std::int32_t> prompt{100, 101, 102 + c};
      std::vector<Sequence> samples;
      std::vector<DraftAsk> asks;
      std::map<std::int32_t, int> counts;
      for (int k = 0; k < kSamples; ++k) {
        const auto token = draw(static_cast<std::uint64_t>(c), {c, k}, 3, sharpness);
        ++counts[token];
        samples.push_back(sequence(c, k, prompt, {token, 50, 51}));
      }
      for (const Sequence& s : samples) asks.push_back({&s, 1});
      drafter.propose(asks, {0});
      const Sequence now = sequence(c, kSamples, prompt, {});
      const Drafts drafts = drafter.propose(std::vector<DraftAsk>{{&now, 1}}, {1});
      REQUIRE(drafts[0].size() == 1);
      const auto truth = draw(static_cast<std::uint64_t>(c), now.id, 3, sharpness);
      const auto best = std::max_element(counts.begin(), counts.end(),
                                         [](auto& a, auto& b) { return a.second < b.second; });
      nearest += drafts[0][0] == truth;
      majority += best->first == truth;
      newest += samples.back().tokens[3] == truth;
      most_probable += counts.size() == 1;
    }
    INFO("sharpness " << sharpness << ": nearest " << nearest << ", majority " << majority
                      << ", newest " << newest << " of " << kContexts << ", certain "
                      << most_probable);
    CHECK(nearest > majority + kContexts / 20);
    CHECK(majority > newest);
  }
}

TEST_CASE("what an interrupted generation had is drafted whole, whatever the limits") {
  GuessDrafter drafter(2, kRoom);
  drafter.begin(sampling(), alone(), DraftLimits::nothing());
  drafter.recalled().add({0, 0}, {1, 2, 5, 6, 7, 8, 9, 10, 11, 12});
  Sequence s = sequence(0, 0, {1, 2}, {5});
  const Sequence other = sequence(1, 0, {1, 2}, {5});
  const std::vector<DraftAsk> asks{{&s, 100}, {&other, 100}};
  CHECK(drafter.propose(asks, {100}) == Drafts{{6, 7, 8, 9, 10, 11, 12}, {}});
  CHECK(drafter.is_recalling());
  // Fairly, and no more rows than there are.
  CHECK(drafter.propose(asks, {8}) == Drafts{{6, 7, 8, 9}, {}});
  CHECK(drafter.propose(asks, {1}) == Drafts{{6}, {}});
  drafter.observe(s, 1, std::vector<std::int32_t>{6, 7});
  drafter.observe(other, 0, std::vector<std::int32_t>{6});
  CHECK(drafter.reach() == DraftShares{});  // it says nothing about guesses
  const DraftCounts counts = drafter.finish();
  CHECK(counts.sources[static_cast<int>(DraftSource::kJournal)].accepted == 1);
  s = sequence(0, 0, {1, 2}, {5, 6, 9});
  CHECK(drafter.propose(asks, {100}) == Drafts{{}, {}});
  CHECK_FALSE(drafter.is_recalling());
}

TEST_CASE("how far drafts reach is told by the number of sequences") {
  GuessDrafter drafter(4, kRoom);
  drafter.begin(sampling(), alone(), {});
  CHECK(drafter.reach() == DraftShares{});
  const Sequence s = sequence(0, 0, {1, 2}, {5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7});
  const std::vector<DraftAsk> ask{{&s, 100}};
  const auto step = [&](int drafted, const std::vector<std::int32_t>& tokens) {
    drafter.propose(ask, {100});
    drafter.observe(s, drafted, tokens);
  };
  step(4, {8, 5, 9});  // two right, the third one wrong
  const DraftShares reach = drafter.reach();
  for (int i = 0; i < DraftShares::kLengths; ++i) {
    CHECK(reach.drafted[i] == (i < 4 ? 255 : 0));
    CHECK(reach.accepted[i] == (i < 2 ? 255 : 0));
  }
  step(0, {8});
  CHECK(drafter.reach().drafted[0] > 120);
  CHECK(drafter.reach().drafted[0] < 135);
  // In a step in which nobody was asked, nothing is told.
  drafter.observe(s, 0, std::vector<std::int32_t>{8});
  CHECK(drafter.reach().drafted[0] > 120);
  // Of another number of sequences nothing is known yet; then, that there were none.
  const Sequence t = sequence(1, 0, {3, 4}, {1}), u = sequence(2, 0, {3, 4}, {2});
  const std::vector<DraftAsk> three{{&s, 100}, {&t, 100}, {&u, 100}};
  drafter.set_limits(DraftLimits::nothing());
  drafter.propose(three, {100});
  CHECK(drafter.reach() == DraftShares{});
  for (const DraftAsk& a : three) drafter.observe(*a.sequence, 0, std::vector<std::int32_t>{8});
  CHECK(drafter.reach().drafted[0] == 1);
  CHECK(drafter.reach().accepted[0] == 0);
}

TEST_CASE("what drafts would be if rows cost less is told by its probability, if anybody asks") {
  for (const bool explores : {false, true}) {
    GuessDrafter drafter(4, kRoom);
    if (explores) drafter.explore();
    drafter.begin(sampling(), alone(), {});
    const Sequence s = sequence(0, 0, {1, 2}, {5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7});
    const std::vector<DraftAsk> ask{{&s, 100}};
    for (int step = 0; step < 50; ++step) {
      drafter.propose(ask, {100});
      drafter.observe(s, 4, std::vector<std::int32_t>{8, 5, 6, 7, 8});
    }
    drafter.learn({}, drafter.finish(), {});
    drafter.begin(sampling(), alone(), {DraftLimits::kNothing - 1});
    // No guess is so probable that it is worth its row.
    for (int step = 0; step < 200; ++step) {
      CHECK(drafter.propose(ask, {100}) == Drafts{{}});
      drafter.observe(s, 0, std::vector<std::int32_t>{8});
    }
    // Steps without looks say nothing to who explores.
    drafter.set_limits(DraftLimits::nothing());
    for (int step = 0; step < 200; ++step) {
      drafter.propose(ask, {100});
      drafter.observe(s, 0, std::vector<std::int32_t>{8});
    }
    const DraftShares reach = drafter.reach();
    for (int i = 0; i < 4; ++i) {
      CHECK((reach.drafted[i] > 240) == explores);
      CHECK(reach.accepted[i] <= reach.drafted[i]);
      CHECK((reach.accepted[i] > 240) == explores);
    }
    CHECK(reach.drafted[4] <= 12);
    // A wrong guess ends what would have been right.
    drafter.begin(sampling(), alone(), {});
    for (int step = 0; step < 400; ++step) {
      drafter.propose(ask, {1});
      drafter.observe(s, 1, std::vector<std::int32_t>{9});
    }
    CHECK(drafter.reach().accepted[0] == 0);
    CHECK(drafter.reach().accepted[1] == 0);
  }
}
