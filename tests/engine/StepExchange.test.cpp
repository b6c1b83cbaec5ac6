// SPDX-License-Identifier: Apache-2.0
#include "engine/StepExchange.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace taper;

namespace {

constexpr ControlWord kWord = 0xfedcba9876543210u;

Group world() {
  return Group::world(MPI_COMM_WORLD);
}

}  // namespace

TEST_CASE("all ranks get the choice of the shard that has one, and their leader's word with it") {
  const Group group = world();
  StepExchange exchange(group, kWord + group.rank());
  for (int batch = 0; batch < 3; ++batch) {
    // One choice of each shard, and one that two shards have: the first counts.
    std::vector<Choice> choices(group.size() + 1);
    choices[group.rank()] = {100 * batch + group.rank(), 0.5f * static_cast<float>(group.rank())};
    if (group.rank() >= group.size() - 2) choices.back() = {1000 + group.rank(), -1.0f};
    exchange.share(choices);
    for (int shard = 0; shard < group.size(); ++shard) {
      CHECK(choices[shard].id == 100 * batch + shard);
      CHECK(choices[shard].logit == 0.5f * static_cast<float>(shard));
    }
    CHECK(choices.back().id == 1000 + std::max(0, group.size() - 2));
  }
  const std::uint64_t messages = group.number();
  CHECK(exchange.leader_word() == kWord);
  CHECK(group.number() == messages);
}

TEST_CASE("the word has a message of its own only in a step without choices") {
  const Group group = world();
  StepExchange exchange(group, kWord + group.rank());
  const std::uint64_t messages = group.number();
  CHECK(exchange.leader_word() == kWord);
  CHECK(exchange.leader_word() == kWord);
  CHECK(group.number() == messages + (group.is_null() ? 0 : 1));
}

TEST_CASE("a rank alone hears itself") {
  const Group self = Group::self();
  StepExchange exchange(self, kWord);
  std::vector<Choice> choices{{7, 1.0f}};
  exchange.share(choices);
  CHECK(choices.front().id == 7);
  CHECK(exchange.leader_word() == kWord);
}

TEST_CASE("a choice that no shard has stays open") {
  const Group group = world();
  StepExchange exchange(group, 0);
  std::vector<Choice> choices(2);
  exchange.share(choices);
  for (const Choice& choice : choices) CHECK(choice.id == -1);
}
