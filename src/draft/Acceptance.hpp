// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/ReplicaSnapshot.hpp"

namespace taper {

// Where a guess may come from: the sequence itself, all sequences of its prompt, all that there are
// (each contains the ones before); a draft model; or the same generation, which was interrupted.
enum class DraftSource : std::uint8_t { kSelf, kPrompt, kRun, kModel, kJournal };
inline constexpr int kDraftSources = 5;
const char* to_string(DraftSource source);

// What speaks for a guess.
enum class Evidence : std::uint8_t {
  kNewest,       // it is the newest one of the longest match; random numbers are not known, or do
                 // not matter (greedy, journal)
  kVotes,        // it is the most frequent one
  kFar,          // the nearest random number is more than 1/8 away,
  kMiddle,       // 1/32,
  kNear,         // 1/128
  kNearest,      // or less
  kBetween,      // places with smaller and with larger random numbers have the same token
  kProbability,  // it is what a draft model would draw; its level is its log-prob there
};
inline constexpr int kEvidences = 8;

// Guesses that are judged alike.
struct GuessKind {
  // What a level begins with: the length of the match, or the log-prob (of 0.3, 0.6, 0.85, 0.97).
  static constexpr std::array<int, 5> kMatches{3, 4, 6, 10, 20};
  static constexpr std::array<float, 5> kLogProbs{-1e30f, -1.204f, -0.511f, -0.1625f, -0.0305f};
  static constexpr int kLevels = static_cast<int>(kMatches.size());
  static constexpr int kKinds = kDraftSources * kLevels * kEvidences;

  DraftSource source = DraftSource::kSelf;
  int level = 0;
  Evidence evidence = Evidence::kNewest;

  // Of a token with this log-prob in a draft model.
  static GuessKind of_model(float log_prob);
  int index() const {
    return (static_cast<int>(source) * kLevels + level) * kEvidences + static_cast<int>(evidence);
  }
};

struct Guess {
  GuessKind kind;
  std::int32_t token = 0;
};

// How many guesses were right, and how many there were.
struct RightOf {
  std::int64_t right = 0, all = 0;

  friend bool operator==(const RightOf&, const RightOf&) = default;
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
  RightOf of(const GuessKind& kind) const;
  // Of all guesses of a source.
  RightOf of(DraftSource source) const;

 private:
  std::array<std::int64_t, 2 * GuessKind::kKinds> counts_{};  // right ones, and all
};

// The share of right ones, in 1/kRatioOne; one half before anything is known.
constexpr int estimate(const RightOf& known) {
  return static_cast<int>(kRatioOne * (1 + known.right) / (2 + known.all));
}

}  // namespace taper
