// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/Random.hpp"

namespace taper {

// Where a draft may come from: the sequence itself, all sequences of its prompt, all that there
// are. Each contains the ones before.
enum class DraftSource : std::uint8_t { kSelf, kPrompt, kRun };
inline constexpr int kDraftSources = 3;
const char* to_string(DraftSource source);

// A sequence whose tokens may be those of others, too.
struct IndexedText {
  RandomKey key;  // of its random numbers, less the position
  int prompt_length = 0;
  std::uint64_t prompt_hash = 0;
  std::vector<std::int32_t> tokens;
};

// A token that followed the same context: token `position` of a text.
struct IndexedPlace {
  const IndexedText* text = nullptr;
  int position = 0;
  int match = 0;  // how many tokens before it are those asked about, counted up to kLongestMatch

  std::int32_t token() const { return text->tokens[position]; }
};

// Finds the places in a set of texts where the last tokens of a sequence have occurred before: hash
// chains of contexts of kShortestMatch tokens, newest first, as in LZ77 compressors. One chain for
// each source. A pure function of the texts in the order of their tokens.
class SuffixIndex {
 public:
  static constexpr int kShortestMatch = 3, kLongestMatch = 32;
  static constexpr int kPlaces = 24;  // that find() looks at in a chain

  // Without `self`, no chains of single texts are kept.
  explicit SuffixIndex(bool self) : self_(self) {}

  // A new text, with its prompt alone; its number. Prompts are found only where `index_prompt`
  // says so: once is enough for all samples of one.
  int add(const RandomKey& key, std::span<const std::int32_t> prompt, bool index_prompt);
  // The next tokens of a text.
  void append(int text, std::span<const std::int32_t> tokens);
  void clear();

  const IndexedText& text(int number) const { return *texts_[number]; }
  std::int64_t tokens() const { return std::ssize(arrivals_); }
  int texts() const { return static_cast<int>(texts_.size()); }
  std::int64_t bytes() const;

  // Adds to `places` those of a source after whose last tokens `context` ends, newest first; `of`
  // says which prompt or sequence is asked about.
  void find(DraftSource source, const IndexedText& of, std::span<const std::int32_t> context,
            std::vector<IndexedPlace>& places) const;

 private:
  // A place is a number: the texts' tokens in order of their arrival.
  struct Arrival {
    std::int32_t text, position;
  };
  struct Chain {
    std::vector<std::int32_t> newest;  // by hash of the context; -1: none. A power of two.
    std::vector<std::int32_t> before;  // by arrival: the next older one
  };

  bool keeps(DraftSource source) const { return self_ || source != DraftSource::kSelf; }
  std::uint64_t context_hash(DraftSource source, const IndexedText& text,
                             const std::int32_t* end) const;
  void arrive(int text, int position);
  void link(Chain& chain, std::uint64_t hash, std::int32_t arrival);
  void grow(DraftSource source);

  bool self_;
  std::vector<std::unique_ptr<IndexedText>> texts_;  // places point at them
  std::vector<Arrival> arrivals_;
  std::array<Chain, kDraftSources> chains_;
};

}  // namespace taper
