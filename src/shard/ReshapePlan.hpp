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

// The same in two steps for pieces, of equal size, that many ranks need: each goes from a holder to
// one of these ranks, and from there to the others. Of pieces that the same ranks hold and lack,
// each of these gets an equal run first: a scatter, then an all-gather. No rank sends much more
// than twice what the ranks get each, however many they are; holders alone would send it once for
// each.
struct RelayedMoves {
  std::vector<PieceMove> scatter, gather;
};
// For `pieces` alone. Throws Error if a needed piece is held by no rank.
RelayedMoves plan_relayed_moves(const Ownership& held, const Ownership& needed, Range pieces);

}  // namespace taper
