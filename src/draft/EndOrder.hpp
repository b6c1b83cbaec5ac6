// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/Response.hpp"
#include "engine/Drafter.hpp"

namespace taper {

// How responses of earlier generations ended: integers, which may be summed over ranks.
class Endings {
 public:
  // What was given up does not count.
  void count(std::int64_t length, FinishReason reason);
  void add(const Endings& other);
  // Lets what is old count less.
  void fade();
  std::span<std::int64_t> counts() { return counts_; }

  // The probability that a response which has come to this length goes on to its limit; one half
  // before anything is known.
  double reaches_limit(std::int64_t length) const;

 private:
  // For each bucket of lengths, responses that came so far, and those of them that went on to their
  // limit.
  std::array<std::int64_t, 2 * kLengthBuckets> counts_{};
};

// A sequence on its way to its limit: the steps that it needs if it takes all drafts that it can
// get, and the probability that it does not end before.
struct Runner {
  double steps = 0, reaches_limit = 1;
};

// For each, the probability that all others have ended when it ends. Of those at their limits that
// is the last one; if none gets there, each is as likely as the others.
std::vector<double> chances_to_end_last(std::span<const Runner> runners);

// Which sequences a generation will wait for. A token that a sequence gets early saves a row of a
// later step, but the step itself only if no other sequence needs it.
class EndOrder {
 public:
  // The worth of each sequence, in the mean 1: the probability that it ends last times their
  // number; while others wait for a place, 1. All ranks of a group compute the same: from integers
  // that they have in common, by the same operations in the same order.
  std::vector<double> worths(std::span<const DraftAsk> asks, Queue queue, const Endings& before);
  // The worth of one of these; of others 1.
  double worth(const ResponseId& id) const;
  // A step with these sequences has given this one so many tokens.
  void observe(const ResponseId& id, std::int64_t tokens);
  void restart() { seen_.clear(); }

 private:
  // Tokens and steps in which drafts for the sequence were worth something; at first one token a
  // step.
  struct Seen {
    std::int64_t tokens = 4, steps = 4;
    double worth = 1;
  };
  std::map<ResponseId, Seen> seen_;  // the sequences that were asked for last
};

}  // namespace taper
