// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "text/detail/Component.hpp"
#include "text/detail/Regex.hpp"

namespace taper::detail {

// A part of the text. BPE never merges over its borders.
struct Piece {
  std::string text;       // normalized, in the alphabet of the model, never empty
  bool at_start = false;  // begins where the whole input begins
};

// What a split does with the matches of its pattern.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

// The pieces of a text of size bytes whose pattern matches at the given places, in order, as
// Hugging Face cuts them.
std::vector<Span> split_spans(const std::vector<Span>& matches, std::size_t size,
                              SplitBehavior behavior, bool invert = false);

// Cuts text into pieces: a list of steps, each of which may cut a piece further or rewrite it.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  // Null means no steps. Supported: Split, Digits, ByteLevel, Metaspace, Sequence.
  explicit PreTokenizer(const Component& component) { add(component); }

  std::vector<Piece> apply(Piece piece) const;

 private:
  using Step = std::function<void(Piece&&, std::vector<Piece>&)>;
  void add(const Component& component);
  void add_split(Regex regex, SplitBehavior behavior, bool invert);
  void add_byte_level(const Component& component);
  void add_metaspace(const Component& component);

  std::vector<Step> steps_;
};

}  // namespace taper::detail
