// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "draft/Acceptance.hpp"
#include "draft/SuffixIndex.hpp"
#include "engine/Completion.hpp"
#include "engine/SamplingOptions.hpp"
#include "engine/Sequence.hpp"

namespace taper {

// The last ones of these that have at most so many tokens together, prompts included.
std::span<const Completion> last_of(std::span<const Completion> responses, std::int64_t tokens);

// Guesses that what followed the same context before follows again - in the sequence itself, in
// other responses to its prompt, in whatever has been generated.
//
// A token is the inverse transform of its random number, which is known before the token is drawn,
// and so are the numbers of all tokens before. Among the places of a context, the guess is the
// token whose random number is nearest to the one that will be drawn with: equal distributions give
// it with equal numbers, and the same between two numbers that give it. Where places differ in what
// came before, the most frequent token is the better guess (doc/speculation.md).
class TextGuesses {
 public:
  // index_bytes: what earlier generations may take.
  explicit TextGuesses(std::int64_t index_bytes) : index_bytes_(index_bytes) {}

  // Starts a generation without sequences; responses of earlier ones stay.
  void begin(const SamplingOptions& sampling);
  // Forgets the sequences.
  void forget_sequences();
  // Learns the tokens that a sequence of the generation has got since the last call.
  void follow(const Sequence& sequence);
  // Reads the responses of earlier generations that have come since the last call, and the tokens
  // of sequences: guess() knows what has been read.
  void read_past() { past_.read(); }
  void read_sequences() { live_.read(); }
  // Guesses for token `position` of a sequence that is followed, where it comes after `context`,
  // the last tokens before it. Appended to `guesses`, of equal worth the longest match of the
  // narrowest source last.
  void guess(const ResponseId& id, std::span<const std::int32_t> context, int position,
             std::vector<Guess>& guesses);
  // Forgets the sequences and keeps the responses of the generation that is over. Without room for
  // earlier generations, nothing needs to be kept.
  void learn(std::span<const Completion> responses);
  // Whether responses of earlier generations to this prompt are known.
  bool knows(std::span<const std::int32_t> prompt) const { return past_.has_prompt(prompt); }
  // The tokens of earlier generations that there is room for, at most.
  std::int64_t room() const { return index_bytes_ / SuffixIndex::kLeastBytesPerToken; }
  std::int64_t past_bytes() const { return past_.bytes(); }

 private:
  bool add_guesses(DraftSource source, int level, std::uint64_t number,
                   std::vector<Guess>& guesses);
  std::int32_t most_frequent(int level);
  void shrink();

  std::int64_t index_bytes_;
  SamplingOptions sampling_;
  // Of the generation, and of earlier ones, in which a sequence is no longer asked about.
  SuffixIndex live_{DraftSource::kSelf}, past_{DraftSource::kPrompt};
  std::map<ResponseId, int> texts_;     // of live_
  std::vector<IndexedPlace> places_;    // of the context asked about, and
  std::vector<std::uint64_t> numbers_;  // their random numbers
  std::vector<std::pair<std::int32_t, int>> votes_;
};

}  // namespace taper
