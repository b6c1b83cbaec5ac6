// SPDX-License-Identifier: Apache-2.0
#include "comm/Mailbox.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "base/Random.hpp"
#include "comm/Collectives.hpp"

using namespace taper;

namespace {

// What rank `from` sends as its message number `n` to each rank of a group.
std::string message(int from, int n) {
  RandomStream random(1, RandomPurpose::kTest, from, n);
  const std::size_t size = n % 7 == 0 ? 0 : random.below(n % 5 == 0 ? 200000 : 50);
  return std::to_string(from) + " " + std::to_string(n) + " " +
         std::string(size, static_cast<char>('a' + n % 26));
}

}  // namespace

TEST_CASE("all messages arrive once, those of a rank in their order") {
  const Group world = Group::world(MPI_COMM_WORLD);
  Mailbox mail(world);
  for (int round = 0; round < 3; ++round) {
    // Some ranks look for messages while others send, and nobody waits.
    std::vector<std::string> taken;
    for (int n = 0; n < 60; ++n) {
      for (int to = 0; to < world.size(); ++to) mail.send(to, message(world.rank(), n));
      if ((n + world.rank()) % 3 != 0) continue;
      while (const auto arrived = mail.take()) taken.push_back(*arrived);
    }
    for (std::string& rest : mail.finish()) taken.push_back(std::move(rest));
    std::map<char, int> next;
    for (const std::string& text : taken) {
      const int from = text.front() - '0';
      REQUIRE(text == message(from, next[text.front()]++));
    }
    REQUIRE(std::ssize(next) == world.size());
    for (const auto& [from, count] : next) CHECK(count == 60);
  }
  CHECK_FALSE(mail.take().has_value());
}

TEST_CASE("nothing is taken that was not sent") {
  const Group world = Group::world(MPI_COMM_WORLD);
  Mailbox mail(world);
  CHECK_FALSE(mail.take().has_value());
  CHECK(mail.finish().empty());
  const int next = (world.rank() + 1) % world.size();
  mail.send(next, "one");
  const std::vector<std::string> rest = mail.finish();
  REQUIRE(rest.size() == 1);
  CHECK(rest.front() == "one");
  CHECK(mail.finish().empty());
}
