// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/detail/Component.hpp"

namespace taper::detail {

// Byte-pair encoding of one piece of text: characters become symbols, and the adjacent pair with
// the lowest rank (leftmost among equals) is merged until none is left. O(n log n) in the length of
// the piece.
class BpeModel {
 public:
  // Buffers of encode(), kept between calls.
  struct Scratch {
    struct Symbol {
      int id;
      int previous, next;  // neighbors by index, -1: none
      bool alive;
    };
    struct Merge {
      int rank, position, id;
    };
    std::vector<Symbol> symbols;
    std::vector<Merge> heap;
  };

  BpeModel() = default;
  // The object "model". Only the type BPE without dropout is supported.
  explicit BpeModel(const Component& component);

  // Appends the ids of piece, which must be valid UTF-8.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int>& ids) const;

  std::optional<int> token_id(std::string_view token) const;
  // Nothing for an id without a token.
  const std::string* token(int id) const;
  int size() const { return static_cast<int>(tokens_.size()); }  // largest id + 1

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  struct MergeRule {
    int rank, id;
  };

  void read_vocabulary(const Component& component);
  void read_merges(const Component& component);
  void read_unknown(const Component& component);
  void add_merge(const Component& component, const std::string& left, const std::string& right,
                 int rank);
  void split_characters(std::string_view piece, Scratch& scratch) const;
  bool add_bytes(std::string_view character, Scratch& scratch) const;
  void merge_symbols(Scratch& scratch) const;
  void push_merge(Scratch& scratch, int position) const;

  std::unordered_map<std::string, int, Hash, std::equal_to<>> ids_;
  std::vector<std::string> tokens_;                      // by id
  std::vector<bool> has_token_;                          // by id: ids may have holes
  std::unordered_map<std::uint64_t, MergeRule> merges_;  // (left id << 32) | right id
  std::vector<int> byte_ids_;    // id of <0xNN>, -1: none; empty without byte fallback
  std::vector<int> small_ids_;   // id of each one-character token below U+0200, -1: none
  std::string prefix_, suffix_;  // of continuing symbols, of the last symbol
  std::optional<int> unknown_;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
};

}  // namespace taper::detail
