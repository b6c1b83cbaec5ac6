// SPDX-License-Identifier: Apache-2.0
#include "shard/ReshapePlan.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <numeric>
#include <set>

#include "base/Error.hpp"
#include "base/Random.hpp"
#include "shard/RankGrid.hpp"
#include "shard/Shard.hpp"

using namespace taper;

namespace {

std::int64_t bytes_moved(const std::vector<PieceMove>& moves,
                         const std::vector<std::int64_t>& bytes) {
  std::int64_t total = 0;
  for (const auto& move : moves) total += bytes[static_cast<std::size_t>(move.piece)];
  return total;
}

// KV pieces (sequence, KV head) of one merged group of `degree` ranks that was `degree / factor`
// sized before, every small group with its own sequences.
struct KvMerge {
  Ownership held, needed;

  KvMerge(const DivisorChain& chain, int before, int after, int heads, int sequences_each) {
    for (int replica = 0; replica < after / before; ++replica) {
      for (int s = 0; s < sequences_each; ++s) {
        for (int head = 0; head < heads; ++head) {
          held.push_back({chain.group(before, replica)[shard_of_unit(heads, before, head)]});
          needed.push_back({chain.group(after, 0)[shard_of_unit(heads, after, head)]});
        }
      }
    }
  }
};

// One more piece, with a holder; of the other ranks one in `held_by` holds it, of all ranks one in
// `needed_by` needs it.
void draw_piece(RandomStream& random, int ranks, std::uint64_t held_by, std::uint64_t needed_by,
                Ownership& held, Ownership& needed) {
  held.push_back({static_cast<int>(random.below(static_cast<std::uint64_t>(ranks)))});
  needed.emplace_back();
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank != held.back().front() && random.below(held_by) == 0) held.back().push_back(rank);
    if (random.below(needed_by) == 0) needed.back().push_back(rank);
  }
  std::sort(held.back().begin(), held.back().end());
}

}  // namespace

TEST_CASE("needed minus held, ordered by piece, then receiver") {
  const Ownership held{{0}, {1}, {0, 1}, {2}};
  const Ownership needed{{0, 1, 2}, {1}, {2}, {}};
  const auto moves = plan_moves(held, needed, {10, 10, 10, 10});
  // Piece 2 comes from rank 1: rank 0 has sent 20 bytes already.
  CHECK(moves == std::vector<PieceMove>{{0, 0, 1}, {0, 0, 2}, {2, 1, 2}});
}

TEST_CASE("the sender is the holder with the least bytes so far, lowest rank on ties") {
  const Ownership held{{1, 3}, {1, 3}, {1, 3}, {1, 3}};
  const Ownership needed{{0}, {0}, {0}, {0}};
  const auto moves = plan_moves(held, needed, {100, 10, 10, 100});
  REQUIRE(moves.size() == 4);
  CHECK(moves[0].from == 1);
  CHECK(moves[1].from == 3);
  CHECK(moves[2].from == 3);
  CHECK(moves[3].from == 3);
}

TEST_CASE("a piece nobody holds is an error only if it is needed") {
  CHECK_THROWS_AS(plan_moves({{}}, {{0}}, {1}), Error);
  CHECK(plan_moves({{}}, {{}}, {1}).empty());
}

TEST_CASE("plans of random ownerships are complete and minimal") {
  RandomStream random(11, RandomPurpose::kTest, 0, 0);
  for (int trial = 0; trial < 500; ++trial) {
    const int ranks = static_cast<int>(random.between(1, 9));
    const int pieces = static_cast<int>(random.between(0, 60));
    Ownership held, needed;
    std::vector<std::int64_t> bytes;
    std::set<std::pair<int, int>> missing;  // (piece, rank)
    for (int piece = 0; piece < pieces; ++piece) {
      draw_piece(random, ranks, 4, 3, held, needed);
      for (const int rank : needed.back()) {
        if (!std::binary_search(held.back().begin(), held.back().end(), rank)) {
          missing.insert({piece, rank});
        }
      }
      bytes.push_back(random.between(0, 1000));
    }
    const auto moves = plan_moves(held, needed, bytes);
    REQUIRE(moves.size() == missing.size());
    REQUIRE(std::is_sorted(moves.begin(), moves.end(), [](const auto& a, const auto& b) {
      return std::pair(a.piece, a.to) < std::pair(b.piece, b.to);
    }));
    for (const auto& move : moves) {
      REQUIRE(missing.erase({move.piece, move.to}) == 1);
      REQUIRE(std::binary_search(held[move.piece].begin(), held[move.piece].end(), move.from));
    }
    REQUIRE(missing.empty());
  }
}

TEST_CASE("relayed moves bring everything, in two steps, from ranks that have it by then") {
  RandomStream random(12, RandomPurpose::kTest, 0, 0);
  for (int trial = 0; trial < 500; ++trial) {
    const int ranks = static_cast<int>(random.between(1, 9));
    const int pieces = static_cast<int>(random.between(1, 40));
    Ownership held, needed;
    for (int piece = 0; piece < pieces; ++piece) {
      if (piece > 0 && random.below(3) > 0) {  // the same ranks as the piece before
        held.push_back(held.back());
        needed.push_back(needed.back());
        continue;
      }
      draw_piece(random, ranks, 6, 2, held, needed);
    }
    const std::vector<std::int64_t> bytes(held.size(), 8);
    const Range some{static_cast<int>(random.below(3)) % pieces, pieces};
    const RelayedMoves moves = plan_relayed_moves(held, needed, bytes, some);
    Ownership have = held;
    const auto execute = [&](const std::vector<PieceMove>& step) {
      Ownership after = have;
      for (const PieceMove& move : step) {
        REQUIRE(some.contains(move.piece));
        REQUIRE(std::count(have[move.piece].begin(), have[move.piece].end(), move.from) == 1);
        REQUIRE(std::count(after[move.piece].begin(), after[move.piece].end(), move.to) == 0);
        after[move.piece].push_back(move.to);
      }
      have = after;
    };
    execute(moves.scatter);
    execute(moves.gather);
    for (int piece = some.begin; piece < some.end; ++piece)
      for (const int rank : needed[piece])
        REQUIRE(std::count(have[piece].begin(), have[piece].end(), rank) == 1);
    // As many as without relays, and not later.
    Ownership needed_of_some = needed;
    for (int piece = 0; piece < some.begin; ++piece) needed_of_some[piece].clear();
    const auto direct = plan_moves(held, needed_of_some, bytes);
    REQUIRE(moves.scatter.size() + moves.gather.size() == direct.size());
    REQUIRE(most_bytes(moves.scatter, bytes) + most_bytes(moves.gather, bytes) <=
            most_bytes(direct, bytes));
  }
}

TEST_CASE("with relays copies get a tensor in the time of two, if it has as many pieces") {
  const auto time = [](int pieces, int owners, int copies) {
    Ownership held;
    std::vector<int> others(copies);
    std::iota(others.begin(), others.end(), owners);
    for (int piece = 0; piece < pieces; ++piece) held.push_back({piece * owners / pieces});
    const std::vector<std::int64_t> bytes(held.size(), 1);
    const RelayedMoves moves =
        plan_relayed_moves(held, Ownership(held.size(), others), bytes, {0, pieces});
    return most_bytes(moves.scatter, bytes) + most_bytes(moves.gather, bytes);
  };
  for (const int copies : {1, 2, 8, 64}) CHECK(time(64, 1, copies) <= 2 * 64);
  CHECK(time(64, 1, 1) == 64);
  CHECK(time(64, 1, 64) == 64 + 63);
  // Several owners, with fewer pieces each than there are copies: other ranks relay for each owner.
  CHECK(time(8, 8, 8) <= 1 + 7);
  CHECK(time(32, 8, 8) <= 4 + 28);
  CHECK(time(4, 4, 8) <= 1 + 7);
  // A piece cannot be divided: its relay sends it to all others, as its owner would.
  CHECK(time(1, 1, 63) == 63);
  CHECK(time(4, 1, 7) == 4 + 6);
  CHECK_THROWS_AS(plan_relayed_moves({{}}, {{0}}, {1}, {0, 1}), Error);
}

TEST_CASE("raising the degree moves no byte of nested weight shards") {
  for (const auto& degrees : {std::vector{1, 2, 4, 8}, {1, 3, 6}, {1, 2, 6}}) {
    const DivisorChain chain(degrees);
    for (const int units : {1, 3, 6, 9, 24, 56}) {
      for (const int before : chain.degrees()) {
        for (const int after : chain.degrees()) {
          if (after < before) continue;
          const auto owners = [&](int degree) {
            Ownership result(static_cast<std::size_t>(units));
            for (int rank = 0; rank < chain.ranks(); ++rank) {
              const Range shard = shard_range(units, degree, chain.shard_index(rank, degree));
              for (int u = shard.begin; u < shard.end; ++u) result[u].push_back(rank);
            }
            return result;
          };
          const std::vector<std::int64_t> bytes(static_cast<std::size_t>(units), 64);
          REQUIRE(plan_moves(owners(before), owners(after), bytes).empty());
        }
      }
    }
  }
}

TEST_CASE("merging k groups moves exactly (k-1)/k of the KV cache where heads divide evenly") {
  const DivisorChain chain({1, 2, 4, 8});
  for (const int heads : {8, 16, 32}) {
    for (const int before : {1, 2, 4}) {
      for (int after = before; after <= 8; after *= 2) {
        const KvMerge merge(chain, before, after, heads, 3);
        const std::vector<std::int64_t> bytes(merge.held.size(), 4096);
        const std::int64_t total = 4096 * static_cast<std::int64_t>(merge.held.size());
        const int k = after / before;
        REQUIRE(bytes_moved(plan_moves(merge.held, merge.needed, bytes), bytes) ==
                total * (k - 1) / k);
      }
    }
  }
  const DivisorChain six({1, 3, 6});
  const KvMerge merge(six, 3, 6, 12, 5);
  const std::vector<std::int64_t> bytes(merge.held.size(), 8);
  CHECK(bytes_moved(plan_moves(merge.held, merge.needed, bytes), bytes) ==
        8 * static_cast<std::int64_t>(merge.held.size()) / 2);
}

TEST_CASE("merging back and forth spreads the sending evenly") {
  const DivisorChain chain({1, 2, 4});
  const KvMerge merge(chain, 1, 4, 8, 2);
  const std::vector<std::int64_t> bytes(merge.held.size(), 1);
  std::map<int, int> sent, received;
  for (const auto& move : plan_moves(merge.held, merge.needed, bytes)) {
    ++sent[move.from];
    ++received[move.to];
  }
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(sent[rank] == 12);
    CHECK(received[rank] == 12);
  }
}
