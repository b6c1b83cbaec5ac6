// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "comm/Group.hpp"

namespace taper {

// What a leader tells its group with every step; the caller of the engine defines what it means.
using ControlWord = std::uint64_t;

// The token that a draw has come upon, on shards that know its logit.
struct Choice {
  std::int32_t id = -1;  // -1: in another shard
  float logit = -INFINITY;
};

// What the ranks of a group tell one another in one step: the tokens that they choose, and the word
// of their leader, rank 0. A step waits for the others once for each batch of choices; the word
// travels with them and has a message of its own only in a step without choices.
class StepExchange {
 public:
  // Only the leader's word counts. The group must outlive the exchange.
  StepExchange(const Group& group, ControlWord word)
      : group_(group), word_(word), has_leader_word_(group.is_null()) {}

  // Every rank gets the choices of the first shards that have one. All ranks share equally many.
  // Collective over the group.
  void share(std::span<Choice> choices);
  // The last thing that a step asks for. Collective over the group.
  ControlWord leader_word();

 private:
  const Group& group_;
  ControlWord word_;
  bool has_leader_word_;
};

}  // namespace taper
