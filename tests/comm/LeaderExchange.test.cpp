// SPDX-License-Identifier: Apache-2.0
#include "comm/LeaderExchange.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <thread>

#include "base/Random.hpp"
#include "comm/Collectives.hpp"

using namespace taper;

TEST_CASE("leaders learn what all leaders posted, whoever they are") {
  const Group world = Group::world(MPI_COMM_WORLD);
  LeaderExchange exchange(world);
  RandomStream shared(1, RandomPurpose::kTest, 0, 0),
      mine(1, RandomPurpose::kTest, 0, 1 + static_cast<std::uint64_t>(world.rank()));
  int exchanges = 0;
  for (std::int64_t round = 0; round < 300; ++round) {
    std::vector<int> leaders{0};
    for (int r = 1; r < world.size(); ++r)
      if (shared.below(3) > 0) leaders.push_back(r);
    const bool leads = std::find(leaders.begin(), leaders.end(), world.rank()) != leaders.end();
    if (!leads) continue;
    if (mine.below(10) == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    CHECK_FALSE(exchange.is_posted());
    exchange.post(leaders, std::vector<std::int64_t>{round, 100 * round + world.rank()});
    CHECK(exchange.is_posted());
    while (!exchange.test()) std::this_thread::yield();
    ++exchanges;
    REQUIRE(exchange.all().size() == 2 * leaders.size());
    for (std::size_t i = 0; i < leaders.size(); ++i) {
      REQUIRE(exchange.all()[2 * i] == round);
      REQUIRE(exchange.all()[2 * i + 1] == 100 * round + leaders[i]);
    }
  }
  CHECK(exchanges > 100);
  barrier(world);
}

TEST_CASE("an exchange is not complete before all have posted") {
  const Group world = Group::world(MPI_COMM_WORLD);
  LeaderExchange exchange(world);
  std::vector<int> leaders;
  for (int r = 0; r < world.size(); ++r) leaders.push_back(r);
  if (world.rank() == 0 && world.size() > 1) {
    exchange.post(leaders, std::vector<std::int64_t>{5});
    for (int i = 0; i < 100; ++i) CHECK_FALSE(exchange.test());
    barrier(world);
  } else {
    barrier(world);
    exchange.post(leaders, std::vector<std::int64_t>{5});
  }
  while (!exchange.test()) std::this_thread::yield();
  CHECK(exchange.all().size() == leaders.size());
  barrier(world);
}
