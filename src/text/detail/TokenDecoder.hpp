// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "text/detail/Component.hpp"

namespace taper::detail {

// Tokens back to text: a list of steps over the list of token strings, whose result is joined.
class TokenDecoder {
 public:
  TokenDecoder() = default;
  // Null means tokens joined by spaces. Supported: ByteLevel, Metaspace, Replace, ByteFallback,
  // Fuse, Strip, Sequence.
  explicit TokenDecoder(const Component& component);

  // Valid UTF-8.
  std::string decode(std::vector<std::string> tokens) const;

  // The bytes one token stands for inside a text: what decode() does to it before tokens are
  // joined. What concerns the text as a whole (from Fuse on, the first token's missing space) is
  // left out.
  std::string piece_bytes(std::string token) const;

 private:
  struct Step {
    std::function<void(std::vector<std::string>&)> chain;
    std::function<std::string(std::string)>
        piece;  // empty: ends the part that concerns single tokens
  };
  void add(const Component& component);
  void add_metaspace(const Component& component);
  void add_strip(const Component& component);
  void add_each(std::function<std::string(std::string)> change);

  std::vector<Step> steps_;
  bool join_with_spaces_ = false;
};

}  // namespace taper::detail
