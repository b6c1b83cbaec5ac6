// SPDX-License-Identifier: Apache-2.0
#include "text/detail/PreTokenizer.hpp"

#include <algorithm>
#include <map>

#include "text/detail/ByteAlphabet.hpp"
#include "text/detail/Metaspace.hpp"

namespace taper::detail {
namespace {

// GPT-2's words.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct Part {
  Span span;
  bool is_match = false;
};

// Matches and the gaps between them, in order.
std::vector<Part> cover(const std::vector<Span>& matches, std::size_t size) {
  std::vector<Part> parts;
  std::size_t done = 0;
  for (const Span match : matches) {
    if (done != match.begin) parts.push_back({{done, match.begin}, false});
    parts.push_back({match, true});
    done = match.end;
  }
  if (done != size) parts.push_back({{done, size}, false});
  return parts;
}

std::vector<Span> merge_forward(const std::vector<Part>& parts, bool contiguous) {
  std::vector<Span> spans;
  bool previous = false;
  for (const Part& part : parts) {
    const bool joins = contiguous ? part.is_match == previous : part.is_match && !previous;
    if (joins && !spans.empty())
      spans.back().end = part.span.end;
    else
      spans.push_back(part.span);
    previous = part.is_match;
  }
  return spans;
}

std::vector<Span> merge_backward(const std::vector<Part>& parts) {
  std::vector<Span> spans;
  bool following = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->is_match && !following && !spans.empty())
      spans.back().begin = part->span.begin;
    else
      spans.push_back(part->span);
    following = part->is_match;
  }
  std::reverse(spans.begin(), spans.end());
  return spans;
}

SplitBehavior read_behavior(const Component& component) {
  static const std::map<std::string, SplitBehavior> known = {
      {"Isolated", SplitBehavior::kIsolated},
      {"Removed", SplitBehavior::kRemoved},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  const std::string name = component.text("behavior");
  const auto found = known.find(name);
  if (found == known.end()) component.fail("unknown split behavior '" + name + "'");
  return found->second;
}

void cut(const Piece& piece, const std::vector<Span>& spans, std::vector<Piece>& out) {
  for (const Span span : spans)
    if (span.begin != span.end)
      out.push_back({piece.text.substr(span.begin, span.end - span.begin),
                     piece.at_start && span.begin == 0});
}

std::string place_of(const Component& component) {
  return component.file() + ": " + component.place();
}

}  // namespace

std::vector<Span> split_spans(const std::vector<Span>& matches, std::size_t size,
                              SplitBehavior behavior, bool invert) {
  auto parts = cover(matches, size);
  if (invert)
    for (auto& part : parts) part.is_match = !part.is_match;
  if (behavior == SplitBehavior::kMergedWithPrevious) return merge_forward(parts, false);
  if (behavior == SplitBehavior::kContiguous) return merge_forward(parts, true);
  if (behavior == SplitBehavior::kMergedWithNext) return merge_backward(parts);
  std::vector<Span> spans;
  for (const Part& part : parts)
    if (behavior == SplitBehavior::kIsolated || !part.is_match) spans.push_back(part.span);
  return spans;
}

void PreTokenizer::add_split(Regex regex, SplitBehavior behavior, bool invert) {
  steps_.emplace_back([regex = std::move(regex), behavior, invert](Piece&& piece,
                                                                   std::vector<Piece>& out) {
    cut(piece, split_spans(regex.find_all(piece.text), piece.text.size(), behavior, invert), out);
  });
}

void PreTokenizer::add_byte_level(const Component& component) {
  if (component.flag_or("add_prefix_space", true)) {
    steps_.emplace_back([](Piece&& piece, std::vector<Piece>& out) {
      if (!piece.text.starts_with(' ')) piece.text.insert(0, 1, ' ');
      out.push_back(std::move(piece));
    });
  }
  if (component.flag_or("use_regex", true))
    add_split(Regex(kByteLevelPattern, place_of(component)), SplitBehavior::kIsolated, false);
  steps_.emplace_back([](Piece&& piece, std::vector<Piece>& out) {
    piece.text = to_byte_alphabet(piece.text);
    out.push_back(std::move(piece));
  });
}

void PreTokenizer::add_metaspace(const Component& component) {
  steps_.emplace_back([meta = Metaspace(component)](Piece&& piece, std::vector<Piece>& out) {
    std::string text;
    for (const char c : piece.text) {
      if (c == ' ')
        text += meta.replacement;
      else
        text += c;
    }
    const bool wanted =
        meta.prepend == Prepend::kAlways || (meta.prepend == Prepend::kFirst && piece.at_start);
    if (wanted && !text.starts_with(meta.replacement)) text.insert(0, meta.replacement);
    piece.text = std::move(text);
    if (!meta.split) return out.push_back(std::move(piece));
    std::vector<Span> matches;
    for (auto at = piece.text.find(meta.replacement); at != std::string::npos;
         at = piece.text.find(meta.replacement, at + meta.replacement.size()))
      matches.push_back({at, at + meta.replacement.size()});
    cut(piece, split_spans(matches, piece.text.size(), SplitBehavior::kMergedWithNext), out);
  });
}

void PreTokenizer::add(const Component& component) {
  if (component.is_null()) return;
  const std::string type = component.type();
  if (type == "Sequence") {
    for (const auto& child : component.children("pretokenizers")) add(child);
  } else if (type == "Split") {
    add_split(Regex(read_pattern(component), place_of(component)), read_behavior(component),
              component.flag_or("invert", false));
  } else if (type == "Digits") {
    add_split(Regex("\\p{N}", place_of(component)),
              component.flag_or("individual_digits", false) ? SplitBehavior::kIsolated
                                                            : SplitBehavior::kContiguous,
              false);
  } else if (type == "ByteLevel") {
    add_byte_level(component);
  } else if (type == "Metaspace") {
    add_metaspace(component);
  } else {
    component.fail_unsupported({"Split", "Digits", "ByteLevel", "Metaspace", "Sequence"});
  }
}

std::vector<Piece> PreTokenizer::apply(Piece piece) const {
  std::vector<Piece> pieces;
  pieces.push_back(std::move(piece));
  for (const Step& step : steps_) {
    std::vector<Piece> next;
    next.reserve(pieces.size());
    for (Piece& part : pieces) step(std::move(part), next);
    pieces = std::move(next);
  }
  return pieces;
}

}  // namespace taper::detail
