// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace taper
