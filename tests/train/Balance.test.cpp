// SPDX-License-Identifier: Apache-2.0
#include "train/Balance.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "io/Hdf5File.hpp"
#include "support/CapturedLog.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a slow rank is named once, gets less, and is named when it is fast again") {
  const TestRanks world;
  if (world_size() == 1) return;
  const int me = world.ranks.rank(), last = world_size() - 1;
  const Scratch scratch;
  Balance balance({BalanceMode::kOn, 0.05}, world.ranks);
  const auto train = [&](double slow) {
    return logged_by([&] { balance.note({1000.0, me == last ? slow : 1.0}); });
  };
  const std::string first = train(2.0), second = train(2.0);
  const ModelLayout layout{0, {1, world_size()}};
  ReplicaSpeeds expected(static_cast<std::size_t>(world_size()), kSpeedOne);
  expected.back() = kSpeedOne / 2;
  CHECK(balance.shares(layout) == expected);
  CHECK(value_of(balance.metrics(), "balance/speed_min") == 0.5);
  CHECK(value_of(balance.metrics(), "balance/imbalance") > 0.2);
  RunFile file(scratch / "run.h5");
  balance.add_rows(file, 7);
  std::string after;
  for (int i = 0; i < 40; ++i) after += train(1.0);
  balance.add_rows(file, 8);
  CHECK(balance.shares(layout).empty());
  if (me != 0) {
    CHECK(first.empty());
    return;
  }
  CHECK_THAT(first, ContainsSubstring("rank " + std::to_string(last) + " (") &&
                        ContainsSubstring("computes at 0.50 of the median"));
  CHECK(second.empty());
  CHECK_THAT(after, ContainsSubstring("as fast as the median again"));
  file.save();
  const Hdf5File read = Hdf5File::open_read(scratch / "run.h5");
  CHECK(read.read<std::int64_t>("/balance/step").values == std::vector<std::int64_t>{7});
  CHECK(read.read<std::int64_t>("/balance/rank").values == std::vector<std::int64_t>{last});
  CHECK(read.read<double>("/balance/speed").values == std::vector<double>{0.5});
}

TEST_CASE("advice alone changes no share") {
  const TestRanks world;
  Balance balance({BalanceMode::kAdvise, 0.05}, world.ranks);
  balance.note({1000.0, world.ranks.rank() == 0 ? 3.0 : 1.0});
  CHECK(balance.shares({0, {1, world_size()}}).empty());
}
