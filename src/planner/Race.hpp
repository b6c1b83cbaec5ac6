// SPDX-License-Identifier: Apache-2.0
//
// Which responses a short round of tail batching keeps (RollPacker, arXiv 2509.21009): more prompts
// than wanted are started, and those whose responses end first are kept. First by length, not by
// the clock: what is kept is a function of final lengths alone.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/Response.hpp"

namespace taper {

// What a round keeps: so many groups, and so many responses of each.
struct RaceGoal {
  int groups = 0;
  int samples = 0;
};

// A group's length is that of the last response it needs: the samples-th smallest of its responses,
// equal ones by their sample. The groups with the smallest lengths are kept, equal ones by their
// prompt, and of each the smallest responses.
//
// Whatever part of the ended responses is known, bound() never gives up a response that will be
// kept: knowledge that comes late, or to some replicas only, costs steps and changes nothing.
class Race {
 public:
  explicit Race(const RaceGoal& goal) : goal_(goal) {}

  // A response has ended by itself or at its limit; each is told once.
  void ended(const ResponseId& id, int length);

  // A response of this prompt that is not at its end with so many tokens will not be kept.
  static constexpr int kNoBound = std::numeric_limits<int>::max();
  int bound(std::int64_t prompt) const;

  // If enough groups are complete: their ids, ascending. Once all that is alive has been given up,
  // these are the responses that the round keeps.
  std::vector<ResponseId> kept() const;
  // The length of the longest group that is kept so far; kNoBound: too few are complete.
  int cutoff() const;

 private:
  using Ended = std::set<std::pair<int, int>>;  // (length, sample)
  bool is_complete(const Ended& group) const { return std::ssize(group) >= goal_.samples; }

  RaceGoal goal_;
  std::map<std::int64_t, Ended> groups_;         // by prompt: its smallest responses
  std::set<std::pair<int, std::int64_t>> best_;  // (length, prompt) of those that are kept so far
};

}  // namespace taper
