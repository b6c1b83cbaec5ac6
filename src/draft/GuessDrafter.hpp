// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/ReplicaSnapshot.hpp"
#include "draft/Acceptance.hpp"
#include "draft/SuffixIndex.hpp"
#include "engine/Completion.hpp"
#include "engine/Drafter.hpp"
#include "engine/SamplingOptions.hpp"

namespace taper {

// Guesses that were drafted, and those of them that became tokens.
struct DraftTotals {
  std::int64_t drafted = 0, accepted = 0;
};

// Drafts without a model: guesses that what followed the same context before follows again - in the
// sequence itself, in other responses to its prompt, in whatever has been generated.
//
// A token is the inverse transform of its random number, which is known before the token is drawn,
// and so are the numbers of all tokens before. Among the places of a context, the guess is the
// token whose random number is nearest to the one that will be drawn with: equal distributions give
// it with equal numbers, and the same between two numbers that give it. Where places differ in what
// came before, the most frequent token is the better guess; how often each kind was right decides
// (doc/speculation.md).
class IndexDrafter : public Drafter {
 public:
  // draft_length: tokens per sequence and step, at most. index_bytes: what earlier generations may
  // take.
  IndexDrafter(int draft_length, std::int64_t index_bytes)
      : draft_length_(draft_length), index_bytes_(index_bytes) {}

  // Starts a generation with no sequences.
  void begin(const SamplingOptions& sampling, int threshold);
  // The replica, or another one, goes on with other sequences: what only this one has seen of the
  // generation does not count until learn().
  void restart(int threshold);
  // Least probability, in 1/kRatioOne, that a guess and all before it in its draft are right. With
  // kNothing or more, nothing is looked up.
  static constexpr int kNothing = kRatioOne - 1;
  int threshold() const { return threshold_; }
  void set_threshold(int threshold) { threshold_ = threshold; }
  // What this rank has seen of the generation.
  const Acceptance& seen() const { return seen_; }
  const std::array<DraftTotals, kDraftSources>& sources() const { return sources_; }
  // The responses of the generation that is over, from all replicas in the same order on all ranks,
  // and what all ranks have seen.
  void learn(std::span<const Completion> responses, const Acceptance& seen);

  std::int64_t past_bytes() const { return past_.bytes(); }

  std::vector<std::vector<std::int32_t>> propose(std::span<const DraftAsk> asks, int rows) override;

 private:
  struct Guess {
    GuessKind kind;
    std::int32_t token = 0;
  };
  // Of one position: all guesses, up to two per source and level, of which some will be right.
  struct Position {
    std::array<Guess, 2 * kDraftSources * GuessKind::kLevels> guesses;
    int count = 0;
    std::int32_t best = 0;  // the token of the best,
    DraftSource source = DraftSource::kSelf;
    int estimate = -1;  // and its probability in 1/kRatioOne; none yet
  };
  // A sequence of this replica.
  struct Live {
    int text = 0;
    std::vector<Position> asked;  // the positions behind the tokens that it had when last asked
    int drafted = 0;              // of which so many got into the draft
  };

  Live& follow(const Sequence& sequence);
  int estimate(const GuessKind& kind) const;
  void judge(const Live& live, std::span<const std::int32_t> tokens);
  Position guess(const IndexedText& text, std::span<const std::int32_t> context, int position);
  bool add_guesses(Position& position, DraftSource source, int level, std::uint64_t number);
  std::int32_t most_frequent(int level);

  int draft_length_;
  std::int64_t index_bytes_;
  int threshold_ = 0;
  SamplingOptions sampling_;
  SuffixIndex live_{true}, past_{false};
  std::map<ResponseId, Live> sequences_;
  std::set<std::int64_t> prompts_;  // that are in live_
  // Of the generations before; of this one, on this rank; and since it is in its group.
  Acceptance known_, seen_, recent_;
  std::array<DraftTotals, kDraftSources> sources_{};  // since then
  std::vector<IndexedPlace> places_;                  // of the context asked about, and
  std::vector<std::uint64_t> numbers_;                // their random numbers
  std::vector<std::pair<std::int32_t, int>> votes_;
};

}  // namespace taper
