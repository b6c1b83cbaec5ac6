// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace taper::detail {

// Byte range [begin, end) of a text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Regular expression of a tokenizer file, run by Oniguruma, the engine of Hugging Face's
// tokenizers, in the syntax that their binding takes (Oniguruma's own) and without options. Classes
// such as \p{L} follow the Unicode version of that library (6.9.8: Unicode 14).
class Regex {
 public:
  // where names the file and component in error messages.
  Regex(std::string_view pattern, std::string where);

  // All matches from left to right, without overlap and without an empty one right after another.
  // text must be valid UTF-8; an empty one has none. Thread-safe.
  std::vector<Span> find_all(std::string_view text) const;
  // With `content`, which is literal, in place of every match.
  std::string replace_all(std::string_view text, std::string_view content) const;

 private:
  std::shared_ptr<void> code_;  // regex_t, not changed after construction
  std::string where_;
};

// The pattern that matches text literally.
std::string escape_regex(std::string_view text);

}  // namespace taper::detail
