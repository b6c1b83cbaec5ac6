// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shard/Shard.hpp"

namespace taper {

// One transfer of one piece (a unit of a tensor) between two ranks.
struct PieceMove {
  int piece = 0;
  int from = 0;
  int to = 0;
  friend bool operator==(const PieceMove&, const PieceMove&) = default;
};

// Which ranks hold, or need, each piece: ranks_of[piece] is ascending and without repeats.
using Ownership = std::vector<std::vector<int>>;

// The transfers that turn `held` into a superset of `needed`: needed minus held, each from the
// holder with the least bytes to send so far (lowest rank on ties). A pure function: every rank
// computes the same plan. Moves are ordered by piece, then receiver. bytes[piece] weighs the load.
// Throws Error if a needed piece is held by no rank.
std::vector<PieceMove> plan_moves(const Ownership& held, const Ownership& needed,
                                  const std::vector<std::int64_t>& bytes);

// The bytes of the rank that sends, or receives, most.
std::int64_t most_bytes(const std::vector<PieceMove>& moves,
                        const std::vector<std::int64_t>& bytes);

// Needed minus held of `pieces` alone, in two steps: each piece goes from a holder to one of the
// ranks that lack it, and from there to the others. Of pieces that the same ranks hold and lack,
// each of these gets an equal part first: a scatter, then an all-gather. So it takes twice as long
// as receiving the pieces once, however many ranks lack them, if there are as many pieces; holders
// alone would send each piece to every rank. `gather` is empty where that takes no longer.
struct RelayedMoves {
  std::vector<PieceMove> scatter, gather;
};
// Throws Error if a needed piece is held by no rank.
RelayedMoves plan_relayed_moves(const Ownership& held, const Ownership& needed,
                                const std::vector<std::int64_t>& bytes, Range pieces);

}  // namespace taper
