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

// A sequence on its way to its limit: the tokens that it may still get, the steps that each takes
// if it gets all drafts that it can, and the probability that it does not end before.
struct Runner {
  double tokens = 0, steps_per_token = 1, reaches_limit = 1;

  double steps(int tokens_ahead = 0) const { return (tokens - tokens_ahead) * steps_per_token; }
};

// Which of these will end last.
class EndChances {
 public:
  EndChances() = default;
  explicit EndChances(std::span<const Runner> runners);

  std::size_t size() const { return runners_.size(); }
  // The probability that all others have ended a step or more before this one does if it gets so
  // many tokens early: then one more saves a step. Of those that get to their limits that is the
  // last one; if none does, each is as likely as the others.
  double is_last(std::size_t which, int tokens_ahead = 0) const;

 private:
  double none_of_first(std::size_t count, std::size_t but) const;

  std::vector<Runner> runners_;  // that which needs the most steps first
  std::vector<std::size_t> places_;
  // That none of the first i of these gets to its limit; how many of them do, in the mean.
  std::vector<double> none_, some_;
};

// Which sequences a generation will wait for. A token that a sequence gets early saves a row of a
// later step, but the step itself only if no other sequence needs it.
class EndOrder {
 public:
  // A step with these sequences begins. All ranks of a group compute the same: from integers that
  // they have in common, by the same operations in the same order.
  void begin_step(std::span<const DraftAsk> asks, Queue queue, const Endings& before);
  // The worth of a token that one of these sequences gets early, behind so many others: the
  // probability that it ends last, alone, times their number; 1 while others wait for a place, and
  // for other sequences.
  double worth(const ResponseId& id, int tokens_ahead = 0) const;
  // The step has given this one so many tokens.
  void observe(const ResponseId& id, int tokens);
  void restart() { seen_.clear(); }

 private:
  // Tokens and steps in which drafts for the sequence were worth something, at first one token a
  // step; its place among the asks.
  struct Seen {
    std::int64_t tokens = 4, steps = 4;
    std::size_t place = 0;
  };
  std::map<ResponseId, Seen> seen_;  // the sequences that were asked for last
  EndChances chances_;               // of these; of none while others wait for a place
};

}  // namespace taper
