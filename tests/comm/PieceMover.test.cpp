// SPDX-License-Identifier: Apache-2.0
#include "comm/PieceMover.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "base/Error.hpp"
#include "base/Random.hpp"
#include "comm/Collectives.hpp"
#include "comm/GroupCache.hpp"

using namespace taper;

namespace {

using Bytes = std::vector<unsigned char>;

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

Bytes content_of(int piece, std::int64_t size) {
  Bytes content(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<unsigned char>((piece * 131u + i * 7u + i / 256) & 255u);
  }
  return content;
}

struct Scene {
  Ownership held, needed;
  std::vector<std::int64_t> bytes;

  // The same on every rank: it depends on the seed only.
  Scene(int ranks, int pieces, std::int64_t largest, std::uint64_t seed) {
    RandomStream random(seed, RandomPurpose::kTest, 0, 0);
    for (int piece = 0; piece < pieces; ++piece) {
      std::vector<int> holders, needers;
      for (int rank = 0; rank < ranks; ++rank) {
        if (random.below(3) == 0) holders.push_back(rank);
        if (random.below(2) == 0) needers.push_back(rank);
      }
      if (holders.empty()) {
        holders.push_back(static_cast<int>(random.below(static_cast<std::uint64_t>(ranks))));
      }
      held.push_back(holders);
      needed.push_back(needers);
      bytes.push_back(random.below(8) == 0 ? 0 : random.between(1, largest));
    }
  }
};

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// Moves by the plan and checks every piece that this rank needed, and the totals over the group.
MoveStatistics check_move(const Group& group, const Scene& scene, PieceMover& mover) {
  const int me = group.world_rank();
  const int pieces = static_cast<int>(scene.bytes.size());
  std::vector<Bytes> memory(at(pieces));
  for (int piece = 0; piece < pieces; ++piece) {
    if (contains(scene.held[at(piece)], me)) {
      memory[at(piece)] = content_of(piece, scene.bytes[at(piece)]);
    }
  }
  const auto moves = plan_moves(scene.held, scene.needed, scene.bytes);
  const auto moved = mover.move(
      group, OwnMoves(group, moves, scene.bytes),
      [&](int piece) -> const void* {
        REQUIRE(contains(scene.held[at(piece)], me));
        return memory[at(piece)].data();
      },
      [&](int piece) -> void* {
        REQUIRE(contains(scene.needed[at(piece)], me));
        REQUIRE_FALSE(contains(scene.held[at(piece)], me));
        memory[at(piece)].resize(static_cast<std::size_t>(scene.bytes[at(piece)]));
        return memory[at(piece)].data();
      });
  std::int64_t planned_out = 0, planned_in = 0;
  for (const auto& move : moves) {
    planned_out += move.from == me ? scene.bytes[at(move.piece)] : 0;
    planned_in += move.to == me ? scene.bytes[at(move.piece)] : 0;
  }
  CHECK(moved.bytes_sent == planned_out);
  CHECK(moved.bytes_received == planned_in);
  for (int piece = 0; piece < pieces; ++piece) {
    if (!contains(scene.needed[at(piece)], me)) continue;
    REQUIRE(memory[at(piece)] == content_of(piece, scene.bytes[at(piece)]));
  }
  std::vector<std::int64_t> totals{moved.bytes_sent, moved.bytes_received};
  all_reduce_sum(group, totals);
  CHECK(totals[0] == totals[1]);
  return moved;
}

}  // namespace

TEST_CASE("random ownerships are satisfied, in one round or in many") {
  const GroupCache groups(MPI_COMM_WORLD, {});
  const Group& world = groups.world();
  PieceMover mover, small_mover({.round_bytes = 100});
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Scene scene(world.size(), 40, 300, seed);
    const auto moved = check_move(world, scene, mover);
    CHECK(moved.rounds <= 1);
    const auto in_rounds = check_move(world, scene, small_mover);
    CHECK(in_rounds.bytes_sent <= 100 * in_rounds.rounds);
    CHECK(in_rounds.bytes_received <= 100 * in_rounds.rounds);
    if (moved.rounds == 1) CHECK(in_rounds.rounds >= 1);
  }
}

TEST_CASE("what a rank has to do in a plan is as large as what it moves, and executed often") {
  const GroupCache groups(MPI_COMM_WORLD, {});
  const Group& world = groups.world();
  const Scene scene(world.size(), 40, 300, 5);
  const auto plan = plan_moves(scene.held, scene.needed, scene.bytes);
  const OwnMoves own(world, plan, scene.bytes);
  std::size_t sent = 0, received = 0;
  for (const auto& move : plan) {
    sent += move.from == world.rank();
    received += move.to == world.rank();
  }
  const auto pieces_of = [](const std::vector<OwnMoves::Peer>& peers) {
    std::size_t pieces = 0;
    for (const auto& peer : peers) pieces += peer.pieces.size();
    return pieces;
  };
  CHECK(pieces_of(own.to) == sent);
  CHECK(pieces_of(own.from) == received);
  PieceMover mover({.round_bytes = 128});
  for (int time = 0; time < 2; ++time) {
    std::vector<Bytes> memory(scene.bytes.size());
    for (std::size_t piece = 0; piece < memory.size(); ++piece) {
      memory[piece].resize(static_cast<std::size_t>(scene.bytes[piece]));
      if (contains(scene.held[piece], world.rank()))
        memory[piece] = content_of(static_cast<int>(piece), scene.bytes[piece]);
    }
    const auto at_piece = [&](int piece) { return memory[at(piece)].data(); };
    mover.move(world, own, at_piece, at_piece);
    for (std::size_t piece = 0; piece < memory.size(); ++piece)
      if (contains(scene.needed[piece], world.rank()))
        REQUIRE(memory[piece] == content_of(static_cast<int>(piece), scene.bytes[piece]));
  }
}

TEST_CASE("pieces larger than a round are cut") {
  const GroupCache groups(MPI_COMM_WORLD, {});
  const Group& world = groups.world();
  PieceMover mover({.round_bytes = 4096});
  const Scene scene(world.size(), 12, 100'000, 77);
  const auto moved = check_move(world, scene, mover);
  CHECK(moved.bytes_sent <= 4096 * moved.rounds);
  CHECK(moved.bytes_received <= 4096 * moved.rounds);
  if (world.size() > 1) CHECK(moved.rounds >= 5);
}

TEST_CASE("plans name world ranks whatever the order of the group") {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<int> reversed;
  for (int r = ranks - 1; r >= 0; --r) reversed.push_back(r);
  const GroupCache groups(MPI_COMM_WORLD, {reversed});
  PieceMover mover;
  check_move(groups.group(reversed), Scene(ranks, 30, 500, 3), mover);
}

TEST_CASE("merging groups moves (k-1)/k of the pieces and nothing of what is held") {
  int ranks = 1, me = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  const GroupCache groups(MPI_COMM_WORLD, {});
  // Rank r holds `ranks` pieces (heads) of each of its 2 sequences and needs piece r of all
  // sequences.
  Scene scene(ranks, 0, 1, 0);
  for (int piece = 0; piece < 2 * ranks * ranks; ++piece) {
    scene.held.push_back({piece / (2 * ranks)});
    scene.needed.push_back({piece % ranks});
    scene.bytes.push_back(64);
  }
  PieceMover mover;
  const auto moved = check_move(groups.world(), scene, mover);
  CHECK(moved.bytes_sent == 64 * 2 * (ranks - 1));
}

TEST_CASE("a move to the same rank is a copy") {
  const Bytes source = content_of(1, 50);
  Bytes target(50);
  PieceMover mover;
  const std::vector<PieceMove> moves{{0, 3, 3}};
  const auto moved = mover.move(
      Group::self(3), OwnMoves(Group::self(3), moves, std::vector<std::int64_t>{50}),
      [&](int) { return source.data(); }, [&](int) { return target.data(); });
  CHECK(target == source);
  CHECK(moved.bytes_local == 50);
  CHECK(moved.bytes_sent == 0);
  CHECK(moved.rounds == 0);
}

TEST_CASE("an empty plan does nothing") {
  const GroupCache groups(MPI_COMM_WORLD, {});
  PieceMover mover;
  const auto moved = mover.move(groups.world(), OwnMoves(groups.world(), {}, {}), {}, {});
  CHECK(moved.rounds == 0);
}

TEST_CASE("ranks outside of the group and bad options are refused") {
  const std::vector<PieceMove> moves{{0, 0, 9}};
  CHECK_THROWS_AS(OwnMoves(Group::self(0), moves, std::vector<std::int64_t>{8}), Error);
  CHECK_THROWS_AS(PieceMover({.round_bytes = 0}), Error);
}
