// SPDX-License-Identifier: Apache-2.0
#include "shard/ReshapePlan.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/Error.hpp"

namespace taper {
namespace {

// The ranks that need the piece and do not hold it, ascending.
std::vector<int> ranks_without(const Ownership& held, const Ownership& needed, std::size_t piece) {
  std::vector<int> ranks;
  std::set_difference(needed[piece].begin(), needed[piece].end(), held[piece].begin(),
                      held[piece].end(), std::back_inserter(ranks));
  TAPER_INSIST(ranks.empty() || !held[piece].empty(), "piece " << piece << " is needed by rank "
                                                               << ranks.front()
                                                               << " and held by no rank");
  return ranks;
}

}  // namespace

std::vector<PieceMove> plan_moves(const Ownership& held, const Ownership& needed,
                                  const std::vector<std::int64_t>& bytes) {
  TAPER_EXPECT(held.size() == needed.size() && held.size() == bytes.size());
  std::vector<PieceMove> moves;
  std::map<int, std::int64_t> sent;  // bytes per sender so far
  for (std::size_t piece = 0; piece < needed.size(); ++piece) {
    for (const int to : ranks_without(held, needed, piece)) {
      const int from = *std::min_element(held[piece].begin(), held[piece].end(),
                                         [&](int a, int b) { return sent[a] < sent[b]; });
      sent[from] += bytes[piece];
      moves.push_back({static_cast<int>(piece), from, to});
    }
  }
  return moves;
}

RelayedMoves plan_relayed_moves(const Ownership& held, const Ownership& needed, Range pieces) {
  TAPER_EXPECT(held.size() == needed.size());
  RelayedMoves moves;
  for (int begin = pieces.begin, end = begin; begin < pieces.end; begin = end) {
    const std::vector<int> receivers = ranks_without(held, needed, begin);
    while (end < pieces.end && held[end] == held[begin] &&
           (end == begin || ranks_without(held, needed, end) == receivers))
      ++end;
    const int relays = static_cast<int>(receivers.size());
    for (int r = 0; r < relays; ++r) {
      const int relay = receivers[r], from = held[begin][r % held[begin].size()];
      const Range run = shard_range(end - begin, relays, r);
      for (int piece = begin + run.begin; piece < begin + run.end; ++piece) {
        moves.scatter.push_back({piece, from, relay});
        for (const int to : receivers)
          if (to != relay) moves.gather.push_back({piece, relay, to});
      }
    }
  }
  return moves;
}

}  // namespace taper
