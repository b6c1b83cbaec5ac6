// SPDX-License-Identifier: Apache-2.0
//
// What an engine says of its generation and the planner sees of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>

#include "base/Response.hpp"

namespace taper {

// A count as the fields below hold it: 0 if negative, the largest of T if larger.
template <class T>
T clamped(std::int64_t value) {
  return static_cast<T>(
      std::clamp<std::int64_t>(value, 0, std::int64_t{std::numeric_limits<T>::max()}));
}

// The ratio 1: ratios of times and the like are integers in 1/1024, so that all ranks compute
// alike.
inline constexpr int kRatioBits = 10, kRatioOne = 1 << kRatioBits;

// How far drafts reached in steps of a similar number of sequences: the share of sequences with a
// draft of more than i tokens, and of those of which more than i guesses in a row were right, in
// 1/kShareOne; those that would be made if rows cost less may be among them, by their probability.
// All zero: nothing is known of drafts, or none are made.
struct DraftShares {
  static constexpr int kLengths = 8, kShareOne = 255;
  std::array<std::uint8_t, kLengths> drafted{}, accepted{};
  std::uint16_t model = 0;  // time of a draft model / rest of the step, in 1/kRatioOne

  friend bool operator==(const DraftShares&, const DraftShares&) = default;
};

// The state of one replica, as it travels among leaders. Counts are clamped().
struct ReplicaSnapshot {
  static constexpr int kBuckets = kLengthBuckets;

  std::array<std::uint16_t, kBuckets> lengths{};  // running sequences by response length
  std::uint32_t context = 0;                      // summed context of the running, positions
  std::uint32_t response = 0;                     // summed response length of the running, tokens
  std::uint32_t longest = 0;                      // longest context of the running
  std::uint32_t prompts = 0;                      // of the running
  std::uint32_t finished = 0;  // responses that ended in this generation at this replica
  std::uint16_t waiting = 0;   // sequences not yet running (or preempted)
  std::uint16_t speed = 0;     // measured / predicted step time since the last one, in 1/kRatioOne;
                               // 0: nothing measured
  DraftShares drafts;          // of the steps of late, where drafts are made

  int running() const { return std::accumulate(lengths.begin(), lengths.end(), 0); }
  int alive() const { return running() + waiting; }
  friend bool operator==(const ReplicaSnapshot&, const ReplicaSnapshot&) = default;
};
static_assert(sizeof(ReplicaSnapshot) == 84);

}  // namespace taper
