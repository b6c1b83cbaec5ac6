// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/Random.hpp"
#include "draft/Acceptance.hpp"

namespace taper {

// Sources that are texts: those up to kRun.
inline constexpr int kTextSources = 3;

// A sequence whose tokens may be those of others, too.
struct IndexedText {
  RandomKey key;  // of its random numbers, less the position
  int prompt_length = 0;
  // Which texts a source allows for it: those with an equal number.
  std::array<std::uint64_t, kTextSources> scopes{};
  std::vector<std::int32_t> tokens;

  // The random number that token `position` is, or was, drawn with.
  std::uint64_t number(const CounterRandom& random, int position) const {
    RandomKey at = key;
    at.position = static_cast<std::uint64_t>(position);
    return random.bits(at);
  }
};

// The tokens before one that is asked about.
struct IndexedContext {
  std::span<const std::int32_t> tokens;
  std::uint64_t hash;  // of the last ones that a place must share

  explicit IndexedContext(std::span<const std::int32_t> tokens);
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
  static constexpr int kLeastBytesPerToken = 30;
  // That find() looks at in a chain, by source: a few places of whatever has been generated give as
  // many right guesses as many do.
  static constexpr std::array<int, kTextSources> kPlaces{24, 24, 4};

  // Places are found by this source and by the wider ones.
  explicit SuffixIndex(DraftSource narrowest) : narrowest_(narrowest) {}

  // A new text, with its prompt alone; its number. Places in prompts are found once, however many
  // texts have the prompt.
  int add(const RandomKey& key, std::span<const std::int32_t> prompt);
  // The next tokens of a text.
  void append(int text, std::span<const std::int32_t> tokens);
  void clear();

  // Whether a text with this prompt has been added.
  bool has_prompt(std::span<const std::int32_t> prompt) const;

  const IndexedText& text(int number) const { return *texts_[number]; }
  std::int64_t tokens() const { return std::ssize(arrivals_); }
  int texts() const { return static_cast<int>(texts_.size()); }
  // What the texts take once they are read: the same for the same texts, whoever has read them.
  std::int64_t bytes() const;

  // Makes all places that have come since the last call known to find(): texts in which nothing is
  // looked up cost little.
  void read();
  // Adds to `places` those of a text source after whose last tokens `context` ends, newest first;
  // `of` says which prompt or sequence is asked about.
  void find(DraftSource source, const IndexedText& of, const IndexedContext& context,
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

  void arrive(int text, int position) { arrivals_.push_back({text, position}); }
  std::span<Chain> chains() { return std::span(chains_).subspan(static_cast<int>(narrowest_)); }
  std::size_t chain_room() const;

  DraftSource narrowest_;
  std::set<std::uint64_t> prompts_;                  // hashes of those that can be found
  std::vector<std::unique_ptr<IndexedText>> texts_;  // places point at them
  std::vector<Arrival> arrivals_;
  std::int32_t linked_ = 0;  // those of them that are in the chains
  std::array<Chain, kTextSources> chains_;
};

}  // namespace taper
