// SPDX-License-Identifier: Apache-2.0
#include "rl/SampleSet.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "comm/Collectives.hpp"
#include "support/AllSamples.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr int kSamples = 12;

// The i-th sample has i response tokens, and all that can be set.
Sample make_sample(int i) {
  Sample s;
  s.id.prompt = i / 3;
  s.id.sample = i % 3;
  s.prompt = {i, i + 1};
  s.response.assign(i, 3);
  s.log_probs.assign(i, -0.5f * i);
  s.kept_mass.assign(i, 1.0f);
  s.ref_log_probs.assign(i, -0.25f);
  s.finish = static_cast<FinishReason>(i % 3);
  s.spans = {{0, 1, i}, {2 * i, 2, 0}};
  s.rewards = {static_cast<float>(i), 2.0f};
  s.score = static_cast<float>(i);
  s.unshaped_score = static_cast<float>(-i);
  s.unscored = i % 5 == 0;
  s.reward = 0.5f * i;
  s.advantages.assign(i, 1.5f * i);
  s.values.assign(i, 0.1f * i);
  s.returns.assign(i, 0.2f * i);
  s.mask.assign(i, 1);
  if (i > 0) s.mask.front() = 0;
  s.correction.assign(i, 1.0f + i);
  return s;
}

void check_whole(const Sample& s, int i) {
  const Sample e = make_sample(i);
  CHECK(s.id.prompt == e.id.prompt);
  CHECK(s.id.sample == e.id.sample);
  CHECK(s.prompt == e.prompt);
  CHECK(s.response == e.response);
  CHECK(s.log_probs == e.log_probs);
  CHECK(s.kept_mass == e.kept_mass);
  CHECK(s.ref_log_probs == e.ref_log_probs);
  CHECK(s.finish == e.finish);
  CHECK(s.spans == e.spans);
  CHECK(s.rewards == e.rewards);
  CHECK(s.score == e.score);
  CHECK(s.unshaped_score == e.unshaped_score);
  CHECK(s.unscored == e.unscored);
  CHECK(s.reward == e.reward);
  CHECK(s.advantages == e.advantages);
  CHECK(s.values == e.values);
  CHECK(s.returns == e.returns);
  CHECK(s.mask == e.mask);
  CHECK(s.correction == e.correction);
}

// Made on the ranks in some order.
SampleSet make_set(const Group& world) {
  std::vector<Sample> mine;
  for (int i = kSamples - 1; i >= 0; --i)
    if ((i * 7) % world.size() == world.rank()) mine.push_back(make_sample(i));
  return SampleSet(world, std::move(mine));
}

// How many ranks have, and how many speak for, each sample.
void check_copies(const Group& world, const SampleSet& set, int copies) {
  std::vector<std::int64_t> held(set.size(), 0), spoken_for(set.size(), 0);
  for (std::size_t k = 0; k < set.here().size(); ++k) {
    ++held[set.rows()[k]];
    if (set.speaks_for(k)) ++spoken_for[set.rows()[k]];
  }
  all_reduce_sum(world, held);
  all_reduce_sum(world, spoken_for);
  for (std::int64_t row = 0; row < set.size(); ++row) {
    CHECK(held[row] == copies);
    CHECK(spoken_for[row] == 1);
  }
}

}  // namespace

TEST_CASE("every rank knows the summary of each sample, in order, and has its own whole") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const SampleSet set = make_set(world);
  REQUIRE(set.size() == kSamples);
  for (int i = 0; i < kSamples; ++i) {
    const SampleSummary& s = set.all()[i];
    const Sample e = make_sample(i);
    CHECK(s.id.prompt == e.id.prompt);
    CHECK(s.id.sample == e.id.sample);
    CHECK(s.holder == (i * 7) % world.size());
    CHECK(s.prompt_tokens == 2);
    CHECK(s.response_tokens == i);
    CHECK(s.length() == i + 2);
    CHECK(s.loss_tokens == std::max(0, i - 1));
    CHECK(s.finish == e.finish);
    CHECK(s.unscored == e.unscored);
    CHECK(s.score == e.score);
    CHECK(s.unshaped_score == e.unshaped_score);
    CHECK(s.reward == e.reward);
    CHECK(s.rewards == e.rewards);
  }
  for (std::size_t k = 0; k < set.here().size(); ++k) check_whole(set.here()[k], set.rows()[k]);
  check_copies(world, set, 1);
}

TEST_CASE("a block gets copies of all samples, and gives back what it adds to them") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const int upper = world.size() / 2;  // all ranks, if there is one
  const RankBlock block{upper, world.size() - upper};
  const Group half = Group::block(world.comm(), world.rank() < upper ? 0 : upper,
                                  world.rank() < upper ? upper : block.count, world.options());
  for (const int tp : {0, 1, world.size()}) {  // 0: where they were made
    SampleSet set = make_set(world);
    if (tp > 0) set.move_to({tp, world.size() / tp}, std::vector<int>(kSamples, 0));
    const Group* its = block.has(world.rank()) ? &half : nullptr;
    SampleSet copy = set.copy_to(block, its);
    CHECK(set.size() == kSamples);
    for (std::size_t k = 0; k < set.here().size(); ++k) check_whole(set.here()[k], set.rows()[k]);
    if (its != nullptr) {
      CHECK(copy.size() == kSamples);
      CHECK(copy.ranks() == block.count);
      for (std::size_t k = 0; k < copy.here().size(); ++k)
        check_whole(copy.here()[k], copy.rows()[k]);
      check_copies(half, copy, 1);
      copy.move_to({block.count, 1}, std::vector<int>(kSamples, 0));  // several ranks hold one
      for (Sample& s : copy.here()) s.values.assign(s.response.size() + 1, -3.0f);
    } else {
      CHECK(copy.here().empty());
    }
    set.take(copy, SampleFigure::of(&Sample::values));
    for (Sample& s : set.here()) {
      CHECK(s.values == std::vector<float>(s.response.size() + 1, -3.0f));
      s.values = make_sample(static_cast<int>(s.response.size())).values;
    }
    for (std::size_t k = 0; k < set.here().size(); ++k) check_whole(set.here()[k], set.rows()[k]);
    check_copies(world, set, std::max(1, tp));
  }
}

TEST_CASE("without a group a copy is the set itself") {
  SampleSet set({make_sample(2), make_sample(1)});
  const Group self = Group::self();
  SampleSet copy = set.copy_to({0, 1}, &self);
  REQUIRE(copy.size() == 2);
  for (Sample& s : copy.here()) s.values = {9.0f};
  set.take(copy, SampleFigure::of(&Sample::values));
  for (const Sample& s : set.here()) CHECK(s.values == std::vector<float>{9.0f});
}

TEST_CASE("samples arrive whole on all ranks of their replica, and nowhere else") {
  const Group world = Group::world(MPI_COMM_WORLD);
  for (int tp = 1; tp <= world.size(); ++tp) {
    if (world.size() % tp != 0) continue;
    SampleSet set = make_set(world);
    const RankGrid grid{tp, world.size() / tp};
    for (const int shift : {0, 1}) {  // from where they were made, then from replica to replica
      std::vector<int> replica(kSamples);
      for (int i = 0; i < kSamples; ++i) replica[i] = (i + shift) % grid.dp;
      set.move_to(grid, replica);
      std::vector<int> expected;
      for (int i = 0; i < kSamples; ++i)
        if (replica[i] == grid.replica_of(world.rank())) expected.push_back(i);
      CHECK(set.rows() == expected);
      for (std::size_t k = 0; k < set.here().size(); ++k) check_whole(set.here()[k], set.rows()[k]);
      check_copies(world, set, tp);
    }
    const auto all = all_samples(set);
    REQUIRE(all.size() == kSamples);
    for (int i = 0; i < kSamples; ++i) check_whole(all[i], i);
  }
}

TEST_CASE("figures stand in the order of samples, with equal sums wherever these are") {
  const Group world = Group::world(MPI_COMM_WORLD);
  SampleSet set = make_set(world), alone = SampleSet(all_samples(set));
  const auto check = [&](const SampleSet& some) {
    struct Figures {
      double score = 0.0;
      int row = 0;
    };
    const auto figures = some.gather([&](std::size_t k) {
      return Figures{some.here()[k].score, some.rows()[k]};
    });
    REQUIRE(figures.size() == kSamples);
    for (int i = 0; i < kSamples; ++i) {
      CHECK(figures[i].score == i);
      CHECK(figures[i].row == i);
    }
    return sum_over_tokens(some, [&](std::size_t k, std::size_t t) {
      return 0.1 * some.here()[k].response.size() + 1e-3 * static_cast<double>(t);
    });
  };
  const double expected = check(alone);
  CHECK(expected > 1.0);
  CHECK(check(set) == expected);  // on all ranks
  CHECK(check(make_set(world)) == expected);
}

TEST_CASE("what is taken out and put in again leaves the others where they are") {
  const Group world = Group::world(MPI_COMM_WORLD);
  SampleSet set = make_set(world);
  std::vector<bool> late(kSamples, false);
  for (int i = 6; i < kSamples; ++i) late[i] = true;
  SampleSet taken = set.extract(late);
  CHECK(set.size() == 6);
  CHECK(taken.size() == 6);
  for (std::size_t k = 0; k < taken.here().size(); ++k)
    check_whole(taken.here()[k], 6 + taken.rows()[k]);
  check_copies(world, set, 1);
  set.append(std::move(taken));
  CHECK(set.size() == kSamples);
  check_copies(world, set, 1);
  const auto all = all_samples(set);
  for (int i = 0; i < kSamples; ++i) check_whole(all[i], i);
}

TEST_CASE("what is taken out of replicas is whole, and gets figures") {
  const Group world = Group::world(MPI_COMM_WORLD);
  SampleSet set = make_set(world);
  set.move_to({world.size(), 1}, std::vector<int>(kSamples, 0));
  std::vector<bool> late(kSamples, false);
  for (int i = 6; i < kSamples; ++i) late[i] = true;
  SampleSet taken = set.extract(late);
  for (SampleSet* part : {&set, &taken}) {
    check_copies(world, *part, 1);
    const Group self = Group::self(world.rank());
    SampleSet copy = part->copy_to({0, 1}, world.rank() == 0 ? &self : nullptr);
    for (Sample& s : copy.here()) s.values.assign(s.response.size(), 7.0f);
    part->take(copy, SampleFigure::of(&Sample::values));
    for (const Sample& s : part->here())
      CHECK(s.values == std::vector<float>(s.response.size(), 7.0f));
  }
  set.move_to({world.size(), 1}, std::vector<int>(6, 0));
  set.append(std::move(taken));
  check_copies(world, set, 1);
  CHECK(set.size() == kSamples);
}

TEST_CASE("summaries follow what is changed in samples, also by the ranks of a replica") {
  const Group world = Group::world(MPI_COMM_WORLD);
  SampleSet set = make_set(world);
  set.move_to({world.size(), 1}, std::vector<int>(kSamples, 0));
  for (Sample& s : set.here()) s.reward = 3.0f + static_cast<float>(s.id.prompt);
  set.summarize();
  REQUIRE(set.size() == kSamples);
  for (const SampleSummary& s : set.all())
    CHECK(s.reward == 3.0f + static_cast<float>(s.id.prompt));
}
