// SPDX-License-Identifier: Apache-2.0
#include "instance/WeightShare.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/Collectives.hpp"
#include "instance/ModelFiles.hpp"
#include "optim/Ownership.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Ranks in memory domains of so many ranks each (0: in none), wherever they run.
struct Placed : TestRanks {
  explicit Placed(int ranks_per_domain) {
    for (int r = 0; r < world_size(); ++r)
      ranks.hosts.ranks[r].memory_domain =
          ranks_per_domain == 0 ? -1 : r / ranks_per_domain * ranks_per_domain;
  }
  ModelLayout layout(int tp) const { return {0, {tp, ranks.size() / tp}}; }
  int shard_of(int rank, int tp) const { return ranks.chain.shard_index(rank, tp); }

  ModelFiles files{TAPER_GOLDEN_DIR "/models/llama_b"};
};

}  // namespace

TEST_CASE("without shared memory every rank packs what it holds") {
  const Placed p(0);
  for (const int tp : {1, world_size()}) {
    const WeightShare share(p.ranks, p.files.table, {p.layout(tp)});
    CHECK_FALSE(share.is_shared());
    CHECK_FALSE(share.memory().is_shared());
    CHECK(share.packers() == held_pieces(p.files.table, p.ranks.chain, p.layout(tp)));
  }
}

TEST_CASE("of ranks that share memory and hold the same shard, one packs each piece") {
  for (const int ranks_per_domain : {1, 2, world_size()}) {
    const Placed p(ranks_per_domain);
    for (const int tp : {1, world_size()}) {
      INFO(ranks_per_domain << " ranks in a domain, TP " << tp);
      const WeightShare share(p.ranks, p.files.table, {p.layout(tp)});
      const Ownership packers = share.packers(),
                      holders = held_pieces(p.files.table, p.ranks.chain, p.layout(tp));
      const auto copy_of = [&](int rank) {
        return std::pair(p.ranks.hosts.ranks[rank].memory_domain, p.shard_of(rank, tp));
      };
      for (std::size_t piece = 0; piece < holders.size(); ++piece) {
        std::map<std::pair<int, int>, int> packed;  // how often, by copy
        for (const int rank : packers[piece]) ++packed[copy_of(rank)];
        std::set<std::pair<int, int>> copies;
        for (const int rank : holders[piece]) copies.insert(copy_of(rank));
        CHECK(packed.size() == copies.size());
        for (const auto& [copy, times] : packed) CHECK(times == 1);
        const int tensor = p.files.table.tensor_of_piece(static_cast<int>(piece));
        if (std::ranges::count(holders[piece], p.ranks.rank()) > 0)
          CHECK(share.packs(tensor) == (std::ranges::count(packers[piece], p.ranks.rank()) > 0));
      }
    }
  }
}

TEST_CASE("all ranks of a copy give it the same name, and one makes it") {
  for (const int ranks_per_domain : {2, world_size()}) {
    const Placed p(ranks_per_domain);
    const WeightShare share(p.ranks, p.files.table, {p.layout(1)});
    const MemoryShare mine = share.memory();
    std::map<std::string, int> sharers, makers;
    for (const std::string& name : all_gather_string(p.ranks.world(), mine.of)) ++sharers[name];
    for (const std::string& name :
         all_gather_string(p.ranks.world(), mine.makes ? mine.of : "none"))
      ++makers[name];
    CHECK(sharers.at(mine.of) == mine.ranks);
    CHECK(makers.at(mine.of) == 1);
    CHECK(share.is_shared() == (world_size() > 1));
  }
}

TEST_CASE("packing is shared out by size") {
  const Placed p(world_size());
  const WeightShare share(p.ranks, p.files.table, {p.layout(1)});
  std::vector<std::int64_t> packed{0}, most(1), all{0};
  std::int64_t largest = 0;
  const auto& tensors = p.files.table.tensors();
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    const std::int64_t size = tensors[t].unit_size() * tensors[t].units;
    largest = std::max(largest, size);
    all[0] += size;
    if (share.packs(t)) packed[0] += size;
  }
  most = packed;
  all_reduce_max(p.ranks.world(), most);
  CHECK(most[0] <= all[0] / world_size() + largest);
  all_reduce_sum(p.ranks.world(), packed);
  CHECK(packed == all);
}

TEST_CASE("tensors are packed where their masters are, without much to fetch") {
  const Placed p(world_size());
  const Ownership masters = owned_pieces(p.files.table, p.ranks.chain, p.layout(1));
  const Ownership packers = WeightShare(p.ranks, p.files.table, {p.layout(1)}, masters).packers();
  std::set<int> cut;  // tensors of which a part comes from another rank
  for (std::size_t piece = 0; piece < packers.size(); ++piece)
    if (packers[piece] != masters[piece])
      cut.insert(p.files.table.tensor_of_piece(static_cast<int>(piece)));
  CHECK(std::ssize(cut) < world_size());  // those on the borders of what ranks own
}

TEST_CASE("ranks that train do not pack for those that only use the model") {
  const Placed p(world_size());
  if (world_size() < 3) return;
  const RankBlock trained{0, 1};
  const WeightShare share(p.ranks, p.files.table, {p.layout(1), trained});
  for (const auto& packers : share.packers()) {
    REQUIRE(packers.size() == 1);
    CHECK_FALSE(trained.has(packers.front()));
  }
  if (!trained.has(p.ranks.rank())) CHECK(share.memory().ranks == world_size() - 1);
}
