// SPDX-License-Identifier: Apache-2.0
#include "draft/DraftOwners.hpp"

#include <algorithm>
#include <utility>

namespace taper {

std::vector<std::size_t> DraftOwners::deal(std::span<const DraftAsk> asks, int ranks, int rank) {
  const auto before = std::exchange(owners_, {});
  std::vector<int> load(static_cast<std::size_t>(ranks), 0);
  for (const DraftAsk& ask : asks)
    if (const auto at = before.find(ask.sequence->id); at != before.end()) {
      owners_.insert(*at);
      ++load[at->second];
    }
  std::vector<std::size_t> mine;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const auto [at, is_new] = owners_.try_emplace(asks[i].sequence->id);
    if (is_new) {
      at->second = static_cast<int>(std::min_element(load.begin(), load.end()) - load.begin());
      ++load[at->second];
    }
    if (at->second == rank) mine.push_back(i);
  }
  return mine;
}

}  // namespace taper
