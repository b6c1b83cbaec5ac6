// SPDX-License-Identifier: Apache-2.0
#include "kvcache/BlockManager.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <vector>

#include "base/Error.hpp"
#include "base/Random.hpp"

using namespace taper;

TEST_CASE("blocks are handed out once, lowest ids first") {
  BlockManager blocks(4);
  CHECK(blocks.total() == 4);
  CHECK(blocks.free() == 4);
  for (int i = 0; i < 4; ++i) {
    CHECK(blocks.allocate() == i);
    CHECK(blocks.users(i) == 1);
  }
  CHECK(blocks.free() == 0);
}

TEST_CASE("a shared block is free again when its last user lets go") {
  BlockManager blocks(2);
  const auto b = blocks.allocate();
  blocks.share(b);
  blocks.share(b);
  CHECK(blocks.users(b) == 3);
  CHECK(blocks.free() == 1);
  blocks.release(b);
  blocks.release(b);
  CHECK(blocks.users(b) == 1);
  CHECK(blocks.free() == 1);
  blocks.release(b);
  CHECK(blocks.users(b) == 0);
  CHECK(blocks.free() == 2);
  CHECK(blocks.allocate() == b);  // the block used last is the warmest
}

TEST_CASE("bookkeeping starts from given users") {
  BlockManager blocks(std::vector<int>{0, 2, 0, 1});
  CHECK(blocks.total() == 4);
  CHECK(blocks.free() == 2);
  CHECK(blocks.users(1) == 2);
  CHECK(blocks.allocate() == 0);
  CHECK(blocks.allocate() == 2);
  blocks.release(3);
  CHECK(blocks.allocate() == 3);
}

TEST_CASE("a pool without blocks has none free") {
  const BlockManager blocks(0);
  CHECK(blocks.total() == 0);
  CHECK(blocks.free() == 0);
}

TEST_CASE("any order of calls keeps count of users") {
  RandomStream random(7, RandomPurpose::kTest, 0, 0);
  constexpr int kBlocks = 13;
  BlockManager blocks(kBlocks), twin(kBlocks);
  std::map<std::int32_t, int> users;
  for (int i = 0; i < 20000; ++i) {
    const auto choice = random.below(3);
    if (choice == 0 && blocks.free() > 0) {
      const auto b = blocks.allocate();
      REQUIRE(b >= 0);
      REQUIRE(b < kBlocks);
      REQUIRE(users.count(b) == 0);   // never one that is in use
      REQUIRE(twin.allocate() == b);  // the same calls give the same blocks
      users[b] = 1;
    } else if (choice > 0 && !users.empty()) {
      const auto at = std::next(users.begin(), static_cast<long>(random.below(users.size())));
      if (choice == 1 && at->second < 5) {
        blocks.share(at->first);
        twin.share(at->first);
        ++at->second;
      } else {
        blocks.release(at->first);
        twin.release(at->first);
        if (--at->second == 0) users.erase(at);
      }
    }
    REQUIRE(blocks.free() == kBlocks - static_cast<int>(users.size()));
    for (int b = 0; b < kBlocks; ++b)
      REQUIRE(blocks.users(b) == (users.count(b) != 0 ? users[b] : 0));
  }
}

#ifdef TAPER_ASSERTIONS
TEST_CASE("misuse is noticed in builds with assertions") {
  BlockManager blocks(1);
  CHECK_THROWS(blocks.release(0));
  CHECK_THROWS(blocks.share(0));
  blocks.allocate();
  CHECK_THROWS(blocks.allocate());
}
#endif
