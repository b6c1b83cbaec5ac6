// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "base/ReplicaSnapshot.hpp"

namespace taper {

// How far drafts have reached of late, over sequences in steps of a similar number of them.
class DraftReach {
 public:
  // A sequence had `drafted` guesses in a step, of which the first `accepted` were right. `beyond`:
  // for those that it would have had if rows cost less, the probabilities that they are right.
  void add(int drafted, int accepted, std::span<const double> beyond = {});
  // That there were none is known, too: then a first guess has the least share that is not zero.
  DraftShares shares() const;

 private:
  double weight_ = 1;     // of the last sequence: each counts a little more than the one before
  double sequences_ = 0;  // all weights, and those of sequences whose draft, or whose right guesses
  std::array<double, DraftShares::kLengths> drafted_{}, accepted_{};  // were more than i
};

}  // namespace taper
