// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "draft/SuffixIndex.hpp"

namespace taper {

// What speaks for a guess.
enum class Evidence : std::uint8_t {
  kNewest,   // it is the newest one of the longest match; random numbers are not known, or do not
             // matter (greedy)
  kVotes,    // it is the most frequent one
  kFar,      // the nearest random number is more than 1/8 away,
  kMiddle,   // 1/32,
  kNear,     // 1/128
  kNearest,  // or less
  kBetween,  // places with smaller and with larger random numbers have the same token
};
inline constexpr int kEvidences = 7;

// Guesses that are judged alike.
struct GuessKind {
  static constexpr std::array<int, 5> kMatches{3, 4, 6, 10, 20};  // least match of a level
  static constexpr int kLevels = static_cast<int>(kMatches.size());
  static constexpr int kKinds = kDraftSources * kLevels * kEvidences;

  DraftSource source = DraftSource::kSelf;
  int level = 0;
  Evidence evidence = Evidence::kNewest;

  int index() const {
    return (static_cast<int>(source) * kLevels + level) * kEvidences + static_cast<int>(evidence);
  }
};

// How often guesses of each kind were right: integers, so that all ranks of a group estimate alike.
class Acceptance {
 public:
  void count(const GuessKind& kind, bool right);
  void add(const Acceptance& other);
  // Lets what is old count less.
  void fade();
  // All numbers, which may be summed over ranks.
  std::span<std::int64_t> counts() { return counts_; }
  // How many guesses were right, and how many there were.
  std::array<std::int64_t, 2> of(const GuessKind& kind) const;

 private:
  std::array<std::int64_t, 2 * GuessKind::kKinds> counts_{};  // right ones, and all
};

}  // namespace taper
