// SPDX-License-Identifier: Apache-2.0
#include "shard/ReshapePlan.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

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

// The one that has sent least, the lowest of equal ones.
int least_loaded(const std::vector<int>& ranks, std::map<int, std::int64_t>& sent) {
  return *std::min_element(ranks.begin(), ranks.end(),
                           [&](int a, int b) { return sent[a] < sent[b]; });
}

std::vector<PieceMove> direct_moves(const Ownership& held, const Ownership& needed,
                                    const std::vector<std::int64_t>& bytes, Range pieces) {
  std::vector<PieceMove> moves;
  std::map<int, std::int64_t> sent;  // bytes per sender so far
  for (int piece = pieces.begin; piece < pieces.end; ++piece) {
    for (const int to : ranks_without(held, needed, piece)) {
      const int from = least_loaded(held[piece], sent);
      sent[from] += bytes[piece];
      moves.push_back({piece, from, to});
    }
  }
  return moves;
}

}  // namespace

std::vector<PieceMove> plan_moves(const Ownership& held, const Ownership& needed,
                                  const std::vector<std::int64_t>& bytes) {
  TAPER_EXPECT(held.size() == needed.size() && held.size() == bytes.size());
  return direct_moves(held, needed, bytes, {0, static_cast<int>(needed.size())});
}

std::int64_t most_bytes(const std::vector<PieceMove>& moves,
                        const std::vector<std::int64_t>& bytes) {
  std::map<int, std::int64_t> sent, received;
  std::int64_t most = 0;
  for (const PieceMove& move : moves) {
    const std::int64_t size = bytes[move.piece];
    most = std::max({most, sent[move.from] += size, received[move.to] += size});
  }
  return most;
}

RelayedMoves plan_relayed_moves(const Ownership& held, const Ownership& needed,
                                const std::vector<std::int64_t>& bytes, Range pieces) {
  TAPER_EXPECT(held.size() == needed.size() && held.size() == bytes.size());
  RelayedMoves moves;
  std::map<int, std::int64_t> sent, relayed;  // bytes per rank so far
  for (int begin = pieces.begin, end = begin; begin < pieces.end; begin = end) {
    const std::vector<int> receivers = ranks_without(held, needed, begin);
    while (end < pieces.end && held[end] == held[begin] &&
           (end == begin || ranks_without(held, needed, end) == receivers))
      ++end;
    // If there are fewer pieces than relays, the last ones get them: those with the least so far.
    std::vector<int> relays = receivers;
    std::stable_sort(relays.begin(), relays.end(),
                     [&](int a, int b) { return relayed[a] > relayed[b]; });
    const int count = static_cast<int>(relays.size());
    for (int r = 0; r < count; ++r) {
      const int from = least_loaded(held[begin], sent);
      const Range part = shard_range(end - begin, count, r);
      for (int piece = begin + part.begin; piece < begin + part.end; ++piece) {
        sent[from] += bytes[piece];
        relayed[relays[r]] += bytes[piece];
        moves.scatter.push_back({piece, from, relays[r]});
        for (const int to : receivers)
          if (to != relays[r]) moves.gather.push_back({piece, relays[r], to});
      }
    }
  }
  std::vector<PieceMove> direct = direct_moves(held, needed, bytes, pieces);
  if (most_bytes(direct, bytes) <=
      most_bytes(moves.scatter, bytes) + most_bytes(moves.gather, bytes))
    return {std::move(direct), {}};
  return moves;
}

}  // namespace taper
