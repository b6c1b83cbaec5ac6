// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "engine/Drafter.hpp"

namespace taper {

// Which rank of a group drafts for which sequence, where each drafts for some: the same on all of
// them, without a message.
class DraftOwners {
 public:
  // The sequences of a step. A sequence stays with its rank for as long as it is in each step that
  // is dealt; a new one goes to that with the fewest. Returns the places of those of `rank`,
  // ascending.
  std::vector<std::size_t> deal(std::span<const DraftAsk> asks, int ranks, int rank);
  void clear() { owners_.clear(); }

 private:
  std::map<ResponseId, int> owners_;
};

}  // namespace taper
