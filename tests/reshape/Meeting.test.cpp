// SPDX-License-Identifier: Apache-2.0
#include "reshape/Meeting.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/ShareOut.hpp"

using namespace taper;
using namespace taper::test;

namespace {

const DivisorChain kChain({1, 2, 4});

LayoutChange change(const std::string& from, const std::string& to) {
  return {parse_layout(from, kChain), parse_layout(to, kChain), 1};
}

// So many running sequences per replica.
SequenceList list(const std::vector<int>& counts) {
  SequenceList sequences;
  for (std::size_t g = 0; g < counts.size(); ++g)
    for (int i = 0; i < counts[g]; ++i) {
      sequences.emplace_back();
      sequences.back().replica = static_cast<int>(g);
      sequences.back().running = true;
      sequences.back().length = sequences.back().computed = 10;
    }
  return sequences;
}

std::vector<int> per_replica(const std::vector<Destination>& destinations, int replicas) {
  std::vector<int> counts(replicas, 0);
  for (const auto& d : destinations) ++counts[d.replica];
  return counts;
}

}  // namespace

TEST_CASE("a merged replica has the sequences of its ranks") {
  const auto d = share_out(change("1x4", "2+1+1"), list({3, 1, 4, 2}));
  CHECK(per_replica(d, 3) == std::vector<int>{4, 4, 2});
  for (int i = 0; i < 4; ++i) CHECK(d[i].replica == 0);
}

TEST_CASE("a split replica shares its sequences out, and only among its ranks") {
  CHECK(per_replica(share_out(change("4x1", "1x4"), list({11})), 4) ==
        std::vector<int>{3, 3, 3, 2});
  CHECK(per_replica(share_out(change("4x1", "2+1+1"), list({8})), 3) == std::vector<int>{4, 2, 2});
  CHECK(per_replica(share_out(change("2x2", "2+1+1"), list({5, 4})), 3) ==
        std::vector<int>{5, 2, 2});
}

TEST_CASE("repacking evens out and moves no more than needed") {
  const LayoutChange same = change("1x4", "1x4");
  CHECK(per_replica(share_out(same, list({7, 1, 0, 0})), 4) == std::vector<int>{7, 1, 0, 0});
  const auto sequences = list({7, 1, 0, 0});
  const auto d = share_out(same, sequences, true);
  CHECK(per_replica(d, 4) == std::vector<int>{2, 2, 2, 2});
  int moved = 0;
  for (std::size_t i = 0; i < d.size(); ++i) moved += d[i].replica != sequences[i].replica;
  CHECK(moved == 5);
}

TEST_CASE("a meeting knows requests by their whole number") {
  Scheduler scheduler({}, 4);
  Sequence s;
  s.id.prompt = (std::int64_t{1} << 40) + 5;
  s.prompt_length = 2;
  s.tokens = {7, 8};
  s.max_new_tokens = 9;
  scheduler.submit(s);
  const DivisorChain alone({1});
  const Layout layout = parse_layout("1x1", alone);
  const SequenceList list = meet(Group::self(), {layout, layout, 3}, scheduler);
  REQUIRE(list.size() == 1);
  CHECK(list[0].id == s.id);
  CHECK(list[0].prompt_length == 2);
  CHECK(list[0].length == 2);
  CHECK(list[0].limit == 9);
  CHECK_FALSE(list[0].running);
}
