// SPDX-License-Identifier: Apache-2.0
#include "planner/SwitchCost.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/synthetic_profile.hpp"

using namespace taper;

namespace {

const DivisorChain kChain = DivisorChain::of(4);

LatencyProfile profile() {
  LatencyProfile p = test::synthetic_profile(test::small_model_tcp(), {1, 2, 4});
  p.kv_bytes_per_position = 1000;
  p.block_size = 1;
  p.moves = {{PairClass::kSameNode, 5000, 100}};
  p.rendezvous = {{2, 700}, {4, 900}};
  return p;
}

std::vector<SequenceState> sequences(const std::vector<int>& per_replica, int context) {
  std::vector<SequenceState> list;
  for (std::size_t r = 0; r < per_replica.size(); ++r)
    for (int i = 0; i < per_replica[r]; ++i)
      list.push_back({static_cast<std::int64_t>(list.size()), static_cast<std::int32_t>(r), context,
                      10, context - 10, 1000});
  return list;
}

std::vector<int> counts(const std::vector<SequenceMove>& moves, int replicas) {
  std::vector<int> n(replicas, 0);
  for (const SequenceMove& m : moves) ++n[m.to];
  return n;
}

}  // namespace

TEST_CASE("merging keeps sequences in the group that contains theirs") {
  const Layout from = Layout::uniform(1, kChain), to = Layout::uniform(2, kChain);
  const auto list = sequences({3, 1, 0, 2}, 100);
  const auto moves = place_sequences(from, to, Repack::kNo, list);
  for (std::size_t i = 0; i < list.size(); ++i) {
    CHECK(moves[i].to == list[i].replica / 2);
    CHECK(moves[i].kv == KvAction::kMove);
  }
}

TEST_CASE("a group that splits deals its sequences evenly; equal groups can be balanced") {
  const auto split = place_sequences(Layout::uniform(4, kChain), Layout::uniform(1, kChain),
                                     Repack::kNo, sequences({10}, 100));
  CHECK(counts(split, 4) == std::vector{3, 3, 2, 2});
  const Layout here = Layout::uniform(1, kChain);
  const auto list = sequences({7, 1, 0, 2}, 100);
  CHECK(counts(place_sequences(here, here, Repack::kNo, list), 4) == std::vector{7, 1, 0, 2});
  const auto even = counts(place_sequences(here, here, Repack::kYes, list), 4);
  for (const int n : even) CHECK((n == 2 || n == 3));
}

TEST_CASE("shards nest: going up moves only what others lack, going down likewise") {
  const LatencyProfile p = profile();
  const StepModel steps(p);
  const SwitchCost cost(p);
  const auto bytes = [&](const char* from_text, const char* to_text, const std::vector<int>& n) {
    const Layout from = parse_layout(from_text, kChain), to = parse_layout(to_text, kChain);
    const auto list = sequences(n, 100);
    auto moves = place_sequences(from, to, Repack::kNo, list);
    return cost.price(from, resolve(to, steps), list, moves).kv_bytes;
  };
  // One sequence of 100 positions is 100,000 bytes.
  CHECK(bytes("1x4", "2x2", {1, 0, 0, 0}) == 50'000);
  CHECK(bytes("1x4", "4x1", {1, 0, 0, 0}) == 75'000);
  CHECK(bytes("2x2", "4x1", {1, 1}) == 100'000);
  CHECK(bytes("4x1", "1x4", {1}) == 75'000);
  CHECK(bytes("4x1", "2x2", {1}) == 50'000);
  CHECK(bytes("1x4", "2+1+1", {1, 0, 1, 1}) == 50'000);
  CHECK(bytes("2x2", "2x2", {1, 1}) == 0);
}

TEST_CASE("pages move whole") {
  LatencyProfile p = profile();
  p.block_size = 64;
  const StepModel steps(p);
  const Layout from = Layout::uniform(1, kChain), to = Layout::uniform(2, kChain);
  for (const auto& [context, pages] : {std::pair(64, 1), std::pair(65, 2), std::pair(128, 2)}) {
    const auto list = sequences({1, 0, 0, 0}, context);
    auto moves = place_sequences(from, to, Repack::kNo, list);
    CHECK(SwitchCost(p).price(from, resolve(to, steps), list, moves).kv_bytes == pages * 32'000);
  }
}

TEST_CASE("parts add up, and the busiest rank counts") {
  LatencyProfile p = profile();
  p.groups_ns = 1;
  p.weights_ns = 2;
  p.graphs_ns = 3;
  const StepModel steps(p);
  const Layout from = Layout::uniform(1, kChain), to = Layout::uniform(2, kChain);
  const auto list = sequences({1, 0, 0, 0}, 100);
  auto moves = place_sequences(from, to, Repack::kNo, list);
  const SwitchParts parts = SwitchCost(p).price(from, resolve(to, steps), list, moves);
  CHECK(parts.move == 5000 + 50'000 / 10);  // 100 ps per byte
  CHECK(parts.recompute == 0);
  CHECK(parts.rendezvous == 700);
  CHECK(parts.total() == parts.move + 700 + 1 + 2 + 3);
}

TEST_CASE("a sequence is read again where moving it would take longer") {
  LatencyProfile p = profile();
  p.moves = {{PairClass::kSameNode, 5000, 1'000'000'000}};
  const StepModel steps(p);
  const Layout from = Layout::uniform(1, kChain), to = Layout::uniform(4, kChain);
  const auto list = sequences({1, 1, 0, 0}, 100);
  auto moves = place_sequences(from, to, Repack::kNo, list);
  const SwitchParts parts = SwitchCost(p).price(from, resolve(to, steps), list, moves);
  for (const SequenceMove& m : moves) CHECK(m.kv == KvAction::kRecompute);
  CHECK(parts.move == 0);
  CHECK(parts.kv_bytes == 0);
  CHECK(parts.recompute == 2 * steps.curve(4, PairClass::kSameNode).prefill_ns(100, 50));
}
