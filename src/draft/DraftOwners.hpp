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
  // The sequences of a step, all that the group has. A sequence stays with its rank for as long as
  // it is in the group; a new one goes to that with the fewest. Returns the places of `rank`'s
  // among them, ascending.
  std::vector<std::size_t> deal(std::span<const DraftAsk> asks, int ranks, int rank);
  // Whether the sequence is one of another rank than this.
  bool is_of_other(const ResponseId& id, int rank) const;
  void clear() { owners_.clear(); }

 private:
  std::map<ResponseId, int> owners_;
};

}  // namespace taper
