// SPDX-License-Identifier: Apache-2.0
#include "text/detail/BpeModel.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/Utf8.hpp"

namespace taper::detail {
namespace {

std::uint64_t pair_key(int left, int right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
         static_cast<std::uint32_t>(right);
}

// Orders the heap so that the lowest rank, then the leftmost position, is on top.
bool comes_later(const BpeModel::Scratch::Merge& a, const BpeModel::Scratch::Merge& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

}  // namespace

BpeModel::BpeModel(const Component& component) {
  const std::string type = component.type();
  // Files of old versions have no type; only BPE has merges.
  if (type != "BPE" && !(type.empty() && component.has("merges")))
    component.fail_unsupported({"BPE"});
  if (component.has("dropout") && component.node().at("dropout") != 0)
    component.fail("dropout is not supported (the encoding would be random)");
  prefix_ = component.text_or("continuing_subword_prefix", "");
  suffix_ = component.text_or("end_of_word_suffix", "");
  ignore_merges_ = component.flag_or("ignore_merges", false);
  fuse_unknown_ = component.flag_or("fuse_unk", false);
  read_vocabulary(component);
  read_merges(component);
  read_unknown(component);
}

void BpeModel::read_vocabulary(const Component& component) {
  const auto& vocabulary = component.child("vocab").node();
  if (!vocabulary.is_object()) component.fail("key 'vocab' must be an object of token: id");
  ids_.reserve(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    const int number = component.id(id, "token '" + token + "'");
    ids_.emplace(token, number);
    if (number >= size()) {
      tokens_.resize(number + 1);
      has_token_.resize(number + 1);
    }
    if (has_token_[number])
      component.fail("id " + std::to_string(number) + " belongs to two tokens");
    tokens_[number] = token;
    has_token_[number] = true;
  }
  small_ids_.assign(0x200, -1);
  for (char32_t c = 0; c < 0x200; ++c) {
    std::string character;
    append_utf8(character, c);
    small_ids_[c] = token_id(character).value_or(-1);
  }
}

void BpeModel::read_merges(const Component& component) {
  const auto& list = component.child("merges").node();
  if (!list.is_array()) component.fail("key 'merges' must be a list");
  merges_.reserve(list.size());
  int rank = 0;
  for (const auto& entry : list) {
    if (entry.is_string()) {
      const auto line = entry.get<std::string>();
      if (line.starts_with("#version")) continue;
      const auto space = line.find(' ');
      if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
        component.fail("merge '" + line + "' is not two tokens with a space between them");
      add_merge(component, line.substr(0, space), line.substr(space + 1), rank++);
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
               entry[1].is_string()) {
      add_merge(component, entry[0].get<std::string>(), entry[1].get<std::string>(), rank++);
    } else {
      component.fail("merge number " + std::to_string(rank) +
                     " is neither a string nor a pair of strings");
    }
  }
}

void BpeModel::add_merge(const Component& component, const std::string& left,
                         const std::string& right, int rank) {
  const auto find = [&](const std::string& token) {
    const auto id = token_id(token);
    if (!id)
      component.fail("token '" + token + "' of merge number " + std::to_string(rank) +
                     " is not in the vocabulary");
    return *id;
  };
  const std::string tail = right.starts_with(prefix_) ? right.substr(prefix_.size()) : right;
  const int a = find(left), b = find(right);
  merges_.insert_or_assign(pair_key(a, b), MergeRule{rank, find(left + tail)});
}

void BpeModel::read_unknown(const Component& component) {
  if (component.has("unk_token")) {
    const std::string token = component.text("unk_token");
    unknown_ = token_id(token);
    if (!unknown_) component.fail("unk_token '" + token + "' is not in the vocabulary");
  }
  if (!component.flag_or("byte_fallback", false)) return;
  for (int b = 0; b < 256; ++b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", b);
    byte_ids_.push_back(token_id(name).value_or(-1));
  }
}

std::optional<int> BpeModel::token_id(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* BpeModel::token(int id) const {
  return id >= 0 && id < size() && has_token_[id] ? &tokens_[id] : nullptr;
}

bool BpeModel::add_bytes(std::string_view character, Scratch& scratch) const {
  if (byte_ids_.empty()) return false;
  for (const char b : character)
    if (byte_ids_[static_cast<unsigned char>(b)] < 0) return false;
  for (const char b : character)
    scratch.symbols.push_back({byte_ids_[static_cast<unsigned char>(b)], 0, 0, true});
  return true;
}

void BpeModel::split_characters(std::string_view piece, Scratch& scratch) const {
  bool unknown_pending = false;
  std::string decorated;
  for (std::size_t i = 0; i < piece.size();) {
    const CodePoint c = read_utf8(piece, i);
    std::string_view character = piece.substr(i, c.bytes);
    const bool first = i == 0, last = i + c.bytes == piece.size();
    i += c.bytes;
    const bool plain = (first || prefix_.empty()) && (!last || suffix_.empty());
    if (!plain) {
      decorated = (first ? "" : prefix_) + std::string(character) + (last ? suffix_ : "");
      character = decorated;
    }
    const int id = plain && c.value < small_ids_.size() ? small_ids_[c.value]
                                                        : token_id(character).value_or(-1);
    if (id < 0 && add_bytes(character, scratch)) continue;
    if (id < 0 && !unknown_) continue;  // dropped without a trace, as Hugging Face does
    // An unknown symbol stands where the next known one begins; runs are fused on demand.
    if (unknown_pending && (id >= 0 || !fuse_unknown_))
      scratch.symbols.push_back({*unknown_, 0, 0, true});
    unknown_pending = id < 0;
    if (id >= 0) scratch.symbols.push_back({id, 0, 0, true});
  }
  if (unknown_pending) scratch.symbols.push_back({*unknown_, 0, 0, true});
  const int count = static_cast<int>(scratch.symbols.size());
  for (int i = 0; i < count; ++i) {
    scratch.symbols[i].previous = i - 1;
    scratch.symbols[i].next = i + 1 < count ? i + 1 : -1;
  }
}

void BpeModel::push_merge(Scratch& scratch, int position) const {
  const auto& left = scratch.symbols[position];
  if (left.next < 0) return;
  const auto found = merges_.find(pair_key(left.id, scratch.symbols[left.next].id));
  if (found != merges_.end())
    scratch.heap.push_back({found->second.rank, position, found->second.id});
}

void BpeModel::merge_symbols(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  heap.clear();
  for (int i = 0; i < static_cast<int>(symbols.size()); ++i) push_merge(scratch, i);
  std::make_heap(heap.begin(), heap.end(), comes_later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const auto merge = heap.back();
    heap.pop_back();
    auto& left = symbols[merge.position];
    if (!left.alive || left.next < 0) continue;
    const auto found = merges_.find(pair_key(left.id, symbols[left.next].id));
    if (found == merges_.end() || found->second.id != merge.id)
      continue;  // a neighbor has changed since
    auto& right = symbols[left.next];
    left.id = merge.id;
    left.next = right.next;
    right.alive = false;
    if (left.next >= 0) symbols[left.next].previous = merge.position;
    const std::size_t before = heap.size();
    if (left.previous >= 0) push_merge(scratch, left.previous);
    push_merge(scratch, merge.position);
    for (std::size_t n = before + 1; n <= heap.size(); ++n)
      std::push_heap(heap.begin(), heap.begin() + n, comes_later);
  }
}

void BpeModel::encode(std::string_view piece, Scratch& scratch, std::vector<int>& ids) const {
  if (ignore_merges_) {
    if (const auto id = token_id(piece)) return ids.push_back(*id);
  }
  scratch.symbols.clear();
  split_characters(piece, scratch);
  merge_symbols(scratch);
  for (const auto& symbol : scratch.symbols)
    if (symbol.alive) ids.push_back(symbol.id);
}

}  // namespace taper::detail
