// SPDX-License-Identifier: Apache-2.0
#include "rl/Sample.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("reference log-probs of the ranks that computed them arrive on all ranks") {
  const Group world = Group::world(MPI_COMM_WORLD);
  std::vector<Sample> samples(9);
  std::vector<int> mine;
  for (int i = 0; i < 9; ++i)
    if ((i * 5) % world.size() == world.rank()) {
      mine.push_back(i);
      samples[i].ref_log_probs.assign(i, -0.25f * static_cast<float>(i));
    }
  gather_figures(world, samples, mine, &Sample::ref_log_probs);
  for (int i = 0; i < 9; ++i)
    CHECK(samples[i].ref_log_probs == std::vector<float>(i, -0.25f * static_cast<float>(i)));
}

TEST_CASE("all tokens carry a loss unless a mask says otherwise") {
  Sample s;
  s.response = {4, 5, 6};
  CHECK(s.loss_tokens() == 3);
  CHECK(s.carries_loss(2));
  s.mask = {1, 0, 1};
  CHECK(s.loss_tokens() == 2);
  CHECK(!s.carries_loss(1));
  CHECK(s.mean_advantage() == 0.0);
  s.advantages = {1.0f, 2.0f, 6.0f};
  CHECK(s.mean_advantage() == 3.0);
}

TEST_CASE("samples arrive on all ranks in the order of (ordinal, sample) with all their fields") {
  const Group world = Group::world(MPI_COMM_WORLD);
  std::vector<Sample> mine;
  for (int i = 0; i < 12; ++i) {
    if ((i * 7) % world.size() != world.rank()) continue;
    Sample s;
    s.ordinal = 11 - i / 2;
    s.sample = 1 - i % 2;
    s.prompt = {i, i + 1};
    s.response.assign(i, 3);
    s.log_probs.assign(i, -0.5f * i);
    s.kept_mass.assign(i, 1.0f);
    s.rewards = {static_cast<float>(i), 2.0f};
    s.spans = {{0, 1, i}, {2 * i, 2, 0}};
    s.score = static_cast<float>(i);
    s.unshaped_score = static_cast<float>(-i);
    s.finish = static_cast<FinishReason>(i % 3);
    mine.push_back(s);
  }
  const auto all = gather_samples(world, mine);
  REQUIRE(all.size() == 12);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Sample& s = all[k];
    if (k > 0)
      CHECK(std::pair(all[k - 1].ordinal, all[k - 1].sample) < std::pair(s.ordinal, s.sample));
    const int i = static_cast<int>((11 - s.ordinal) * 2 + (1 - s.sample));
    CHECK(s.prompt == std::vector<std::int32_t>{i, i + 1});
    CHECK(s.response.size() == static_cast<std::size_t>(i));
    CHECK(s.log_probs == std::vector<float>(i, -0.5f * i));
    CHECK(s.kept_mass.size() == static_cast<std::size_t>(i));
    CHECK(s.rewards == std::vector<float>{static_cast<float>(i), 2.0f});
    CHECK(s.spans == std::vector<ProducedBy>{{0, 1, i}, {2 * i, 2, 0}});
    CHECK(s.score == static_cast<float>(i));
    CHECK(s.unshaped_score == static_cast<float>(-i));
    CHECK(s.finish == static_cast<FinishReason>(i % 3));
  }
}
