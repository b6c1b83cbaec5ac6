// SPDX-License-Identifier: Apache-2.0
#include "reshape/KvPlan.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>

#include "base/Error.hpp"
#include "base/Random.hpp"

using namespace taper;

namespace {

KvGeometry geometry(int kv_heads, int blocks = 100, int max_running = 64) {
  KvGeometry g;
  g.kv_heads = kv_heads;
  g.bytes_per_page = 1000;
  g.heads = [kv_heads](int tp, int index) { return shard_range(kv_heads, tp, index); };
  g.blocks = [blocks](int) { return blocks; };
  g.max_running = [max_running](int) { return max_running; };
  return g;
}

ListedSequence running(int replica, std::vector<std::int32_t> blocks) {
  ListedSequence s;
  s.replica = replica;
  s.running = true;
  s.length = s.computed = static_cast<int>(blocks.size()) * 64;
  s.blocks = std::move(blocks);
  return s;
}

ListedSequence waiting(int replica) {
  ListedSequence s;
  s.replica = replica;
  s.length = 10;
  return s;
}

LayoutChange change(const DivisorChain& chain, const std::string& from, const std::string& to) {
  return {parse_layout(from, chain), parse_layout(to, chain), 1};
}

std::vector<Destination> all_to(int replica, std::size_t count) {
  return std::vector<Destination>(count, Destination{replica, true});
}

}  // namespace

TEST_CASE("merging two ranks moves half of every page table") {
  const DivisorChain chain({1, 2});
  const SequenceList s{running(0, {0, 1}), running(0, {2}), waiting(0), running(1, {0, 5, 6})};
  const auto c = change(chain, "1x2", "2x1");
  const KvPlan plan = plan_kv(c, chain, geometry(4), s, all_to(0, 4));
  CHECK(plan.blocks.size() == 6);
  // Each of six blocks has four heads, of which the other rank needs two.
  CHECK(plan.transfers.size() == 12);
  CHECK(plan.bytes == 12000);
  REQUIRE(plan.replicas.size() == 1);
  REQUIRE(plan.replicas[0].running.size() == 3);
  CHECK(plan.replicas[0].waiting == std::vector<int>{2});
  CHECK(plan.replicas[0].running[2].sequence == 3);
  std::set<std::int32_t> places;
  for (const auto& r : plan.replicas[0].running) places.insert(r.blocks.begin(), r.blocks.end());
  CHECK(places.size() == 6);
  // And back: what the ranks held as shards is brought together.
  const KvPlan back = plan_kv(change(chain, "2x1", "1x2"), chain, geometry(4),
                              {running(0, {0, 1}), running(0, {2})},
                              std::vector<Destination>{{0, true}, {1, true}});
  CHECK(back.transfers.size() == 2 * 3);
}

TEST_CASE("three KV heads on two ranks") {
  const DivisorChain chain({1, 2});
  const KvPlan plan = plan_kv(change(chain, "1x2", "2x1"), chain, geometry(3),
                              {running(0, {0}), running(1, {0})}, all_to(0, 2));
  // Rank 0 keeps head 0 and sends heads 1 and 2; rank 1 keeps those and sends head 0.
  CHECK(plan.transfers == std::vector<PieceMove>{{1, 0, 1}, {2, 0, 1}, {3, 1, 0}});
}

TEST_CASE("shared blocks travel once and are shared again") {
  const DivisorChain chain({1, 2});
  const SequenceList s{running(0, {7, 8, 1}), running(0, {7, 8, 2}), running(0, {7, 8, 3})};
  const KvPlan plan = plan_kv(change(chain, "1x2", "2x1"), chain, geometry(2), s, all_to(0, 3));
  CHECK(plan.blocks.size() == 5);
  const auto& r = plan.replicas[0].running;
  CHECK(r[0].blocks[0] == r[1].blocks[0]);
  CHECK(r[1].blocks[1] == r[2].blocks[1]);
  CHECK(r[0].blocks[2] != r[1].blocks[2]);
  // To two replicas: once to each.
  const KvPlan split = plan_kv(change(chain, "2x1", "1x2"), chain, geometry(2), s,
                               std::vector<Destination>{{0, true}, {1, true}, {1, true}});
  CHECK(split.blocks.size() == 3 + 4);
}

TEST_CASE("what finds no room is recomputed") {
  const DivisorChain chain({1, 2});
  const SequenceList s{running(0, {0, 1}), running(1, {0, 1}), running(1, {2}), waiting(0)};
  const auto c = change(chain, "1x2", "2x1");
  const KvPlan blocks = plan_kv(c, chain, geometry(2, 3), s, all_to(0, 4));
  REQUIRE(blocks.replicas[0].running.size() == 2);
  CHECK(blocks.replicas[0].running[1].sequence == 2);
  CHECK(blocks.replicas[0].waiting == std::vector<int>{1, 3});  // in front of those that waited
  CHECK(blocks.replicas[0].recomputed_positions == 128);
  const KvPlan slots = plan_kv(c, chain, geometry(2, 100, 2), s, all_to(0, 4));
  CHECK(slots.replicas[0].running.size() == 2);
  CHECK(slots.replicas[0].waiting == std::vector<int>{2, 3});
  auto chosen = all_to(0, 4);
  chosen[0].keep_kv = false;
  const KvPlan choice = plan_kv(c, chain, geometry(2), s, chosen);
  CHECK(choice.replicas[0].waiting == std::vector<int>{0, 3});
  CHECK(choice.replicas[0].recomputed_positions == 128);
  CHECK(choice.blocks.size() == 3);
}

TEST_CASE("repacking leaves alone what stays") {
  const DivisorChain chain({1, 2});
  const SequenceList s{running(0, {4, 9}), running(0, {2}), running(1, {4})};
  const KvPlan plan = plan_kv(change(chain, "1x2", "1x2"), chain, geometry(2), s,
                              std::vector<Destination>{{0, true}, {1, true}, {1, true}});
  CHECK(plan.replicas[0].running[0].blocks == std::vector<std::int32_t>{4, 9});
  CHECK(plan.replicas[1].running[1].blocks == std::vector<std::int32_t>{4});
  CHECK(plan.blocks == std::vector<BlockMove>{{0, 1, 2, 0}});
  CHECK(plan.transfers.size() == 2);
}

TEST_CASE("a destination that is no replica is refused") {
  const DivisorChain chain({1, 2});
  CHECK_THROWS_AS(plan_kv(change(chain, "1x2", "2x1"), chain, geometry(2), {waiting(0)},
                          std::vector<Destination>{{1, true}}),
                  Error);
}

TEST_CASE("components are the ranks that a change ties together") {
  const DivisorChain chain({1, 2, 4, 8});
  const auto of = [&](const std::string& from, const std::string& to, const SequenceList& s,
                      const std::vector<Destination>& d) {
    return components(change(chain, from, to), s, d);
  };
  CHECK(of("1x8", "2x4", {}, {}) == std::vector<int>{0, 0, 2, 2, 4, 4, 6, 6});
  CHECK(of("2x4", "2+2+4", {}, {}) == std::vector<int>{0, 1, 2, 3, 4, 4, 4, 4});
  CHECK(of("4x2", "2+1+1+4", {}, {}) == std::vector<int>{0, 0, 0, 0, 4, 5, 6, 7});
  CHECK(of("2x4", "2x4", {waiting(0)}, {{2, true}}) == std::vector<int>{0, 0, 2, 3, 0, 0, 6, 7});
}

TEST_CASE("random changes keep every sequence once, in distinct places") {
  RandomStream random(5, RandomPurpose::kTest, 0, 0);
  const DivisorChain chain({1, 2, 4});
  const std::vector<std::string> layouts{"1x4", "2x2", "4x1", "2+1+1", "1+1+2"};
  for (int round = 0; round < 400; ++round) {
    const auto c = change(chain, layouts[random.below(5)], layouts[random.below(5)]);
    SequenceList s;
    std::vector<std::int32_t> next(c.from.replicas(), 0);
    for (int i = 0; i < 12; ++i) {
      const int g = static_cast<int>(random.below(c.from.replicas()));
      const int count = 1 + static_cast<int>(random.below(4));
      if (random.below(4) == 0 || next[g] + count > 14) {
        s.push_back(waiting(g));
        continue;
      }
      std::vector<std::int32_t> blocks;
      for (int b = 0; b < count; ++b) blocks.push_back(next[g]++);
      s.push_back(running(g, blocks));
    }
    std::vector<Destination> d;
    for (std::size_t i = 0; i < s.size(); ++i)
      d.push_back({static_cast<int>(random.below(c.to.replicas())), random.below(3) > 0});
    const KvPlan plan = plan_kv(c, chain, geometry(3, 14, 5), s, d);
    std::set<int> seen;
    for (int g = 0; g < c.to.replicas(); ++g) {
      std::set<std::int32_t> places;
      std::size_t blocks = 0;
      REQUIRE(plan.replicas[g].running.size() <= 5);
      for (const auto& r : plan.replicas[g].running) {
        REQUIRE(d[r.sequence].replica == g);
        REQUIRE(d[r.sequence].keep_kv);
        REQUIRE(r.blocks.size() == s[r.sequence].blocks.size());
        REQUIRE(seen.insert(r.sequence).second);
        places.insert(r.blocks.begin(), r.blocks.end());
        blocks += r.blocks.size();
      }
      REQUIRE(places.size() == blocks);
      if (!places.empty()) REQUIRE(*places.rbegin() < 14);
      for (const int number : plan.replicas[g].waiting) REQUIRE(seen.insert(number).second);
    }
    REQUIRE(seen.size() == s.size());
  }
}
