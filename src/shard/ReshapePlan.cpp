// SPDX-License-Identifier: Apache-2.0
#include "shard/ReshapePlan.hpp"

#include <algorithm>
#include <map>

#include "base/Error.hpp"

namespace taper {

std::vector<PieceMove> plan_moves(const Ownership& held, const Ownership& needed,
                                  const std::vector<std::int64_t>& bytes) {
  TAPER_EXPECT(held.size() == needed.size() && held.size() == bytes.size());
  std::vector<PieceMove> moves;
  std::map<int, std::int64_t> sent;  // bytes per sender so far
  for (std::size_t piece = 0; piece < needed.size(); ++piece) {
    const auto& holders = held[piece];
    for (const int to : needed[piece]) {
      if (std::binary_search(holders.begin(), holders.end(), to)) continue;
      TAPER_INSIST(!holders.empty(),
                   "piece " << piece << " is needed by rank " << to << " and held by no rank");
      const int from = *std::min_element(holders.begin(), holders.end(),
                                         [&](int a, int b) { return sent[a] < sent[b]; });
      sent[from] += bytes[piece];
      moves.push_back({static_cast<int>(piece), from, to});
    }
  }
  return moves;
}

}  // namespace taper
