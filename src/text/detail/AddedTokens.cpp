// SPDX-License-Identifier: Apache-2.0
#include "text/detail/AddedTokens.hpp"

#include <utf8proc.h>

#include <algorithm>

#include "base/Utf8.hpp"

namespace taper::detail {
namespace {

// The word characters of Rust's regex crate: Alphabetic, marks, decimal digits, connectors, join
// controls.
bool is_word_character(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
             (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
             (c >= 0x1F170 && c <= 0x1F189);
  }
}

// Start of the last character of text[0, end).
std::size_t last_character(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

bool touches_word(std::string_view text, Span span) {
  if (span.begin > 0 && is_word_character(read_utf8(text, last_character(text, span.begin)).value))
    return true;
  return span.end < text.size() && is_word_character(read_utf8(text, span.end).value);
}

std::size_t skip_space_left(std::string_view text, std::size_t end) {
  while (end > 0) {
    const std::size_t start = last_character(text, end);
    if (!is_white_space(read_utf8(text, start).value)) break;
    end = start;
  }
  return end;
}

std::size_t skip_space_right(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const CodePoint c = read_utf8(text, begin);
    if (!is_white_space(c.value)) break;
    begin += c.bytes;
  }
  return begin;
}

}  // namespace

int ByteTrie::child(int node, unsigned char byte) const {
  for (const auto& [key, index] : nodes_[node].children)
    if (key == byte) return index;
  return 0;
}

void ByteTrie::insert(std::string_view key, int value) {
  int node = 0;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    int next = child(node, byte);
    if (next == 0) {
      next = static_cast<int>(nodes_.size());
      nodes_.emplace_back();
      nodes_[node].children.emplace_back(byte, next);
      if (node == 0) root_[byte] = next;
    }
    node = next;
  }
  if (node != 0 && nodes_[node].value < 0) nodes_[node].value = value;
}

std::size_t ByteTrie::longest_match(std::string_view text, std::size_t position, int& value) const {
  int node = root_[static_cast<unsigned char>(text[position])];
  std::size_t length = 0;
  for (std::size_t i = position + 1; node != 0; ++i) {
    if (nodes_[node].value >= 0) {
      value = nodes_[node].value;
      length = i - position;
    }
    if (i >= text.size()) break;
    node = child(node, static_cast<unsigned char>(text[i]));
  }
  return length;
}

AddedTokens::AddedTokens(const Component& top, const Normalizer& normalizer) {
  if (!top.has("added_tokens")) return;
  for (const auto& entry : top.children("added_tokens")) {
    AddedToken token;
    token.content = entry.text("content");
    token.id = entry.id(entry.child("id").node(), "added token '" + token.content + "'");
    token.special = entry.flag_or("special", false);
    token.single_word = entry.flag_or("single_word", false);
    token.lstrip = entry.flag_or("lstrip", false);
    token.rstrip = entry.flag_or("rstrip", false);
    token.normalized = entry.flag_or("normalized", !token.special);
    const int index = static_cast<int>(tokens_.size());
    if (!by_id_.emplace(token.id, index).second)
      entry.fail("id " + std::to_string(token.id) + " appears twice");
    by_content_.emplace(token.content, index);
    tokens_.push_back(std::move(token));
  }
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (token.content.empty()) continue;
    if (token.normalized)
      normalized_.insert(normalizer.apply(token.content), static_cast<int>(i));
    else
      raw_.insert(token.content, static_cast<int>(i));
  }
}

const AddedToken* AddedTokens::find(int id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

std::vector<Segment> AddedTokens::split(std::string_view text, const ByteTrie& trie) const {
  std::vector<Segment> segments;
  std::size_t done = 0;
  for (std::size_t i = 0; i < text.size();) {
    int index = -1;
    const std::size_t length = trie.longest_match(text, i, index);
    if (length == 0) {
      ++i;
      continue;
    }
    const AddedToken& token = tokens_[index];
    Span span{i, i + length};
    i = span.end;  // a match that is refused below is passed over as a whole
    if (token.single_word && touches_word(text, span)) continue;
    if (token.lstrip) span.begin = std::max(skip_space_left(text, span.begin), done);
    if (token.rstrip) span.end = skip_space_right(text, span.end);
    if (done < span.begin) segments.push_back({{done, span.begin}, -1});
    segments.push_back({span, token.id});
    done = span.end;
  }
  if (done < text.size()) segments.push_back({{done, text.size()}, -1});
  return segments;
}

}  // namespace taper::detail
