// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/detail/Component.hpp"
#include "text/detail/Normalizer.hpp"
#include "text/detail/Regex.hpp"

namespace taper::detail {

// A token recognized in the text as a whole, before the model sees the text.
struct AddedToken {
  int id = 0;
  std::string content;
  bool special = false;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // looked for after normalization
};

// Finds the longest of a set of byte strings at a position.
class ByteTrie {
 public:
  void insert(std::string_view key, int value);
  // Length of the longest key that text has at position (0: none), its value in value.
  std::size_t longest_match(std::string_view text, std::size_t position, int& value) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, int>> children;  // few per node: searched in order
    int value = -1;
  };
  int child(int node, unsigned char byte) const;

  std::vector<Node> nodes_{1};
  std::array<int, 256> root_{};  // child of the root by first byte, 0: none
};

// A part of the input: an added token (id >= 0) or text between them (id -1).
struct Segment {
  Span span;
  int id = -1;
};

// The added tokens of a tokenizer file. Recognition follows Hugging Face: leftmost, then longest.
class AddedTokens {
 public:
  AddedTokens() = default;
  // Reads the list "added_tokens" of the top level.
  AddedTokens(const Component& top, const Normalizer& normalizer);

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find(int id) const;
  const AddedToken* find(std::string_view content) const;

  // Segments of raw text by the tokens that are not normalized.
  std::vector<Segment> split_raw(std::string_view text) const { return split(text, raw_); }
  // Segments of normalized text by the tokens that are.
  std::vector<Segment> split_normalized(std::string_view text) const {
    return split(text, normalized_);
  }

 private:
  std::vector<Segment> split(std::string_view text, const ByteTrie& trie) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<int, int> by_id_;               // id -> index
  std::unordered_map<std::string, int> by_content_;  // content -> index
  ByteTrie raw_, normalized_;
};

}  // namespace taper::detail
