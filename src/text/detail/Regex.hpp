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

// Regular expression as tokenizer files mean it: Oniguruma's Ruby syntax over Unicode, run by
// PCRE2. Constructs whose meaning differs between the two are translated (white space, word
// characters) or refused with an Error. Classes such as \p{L} follow the Unicode version of the
// PCRE2 library (10.42: Unicode 14).
class Regex {
 public:
  // where names the file and component in error messages.
  Regex(std::string_view pattern, std::string where);

  // All matches from left to right, without overlap. text must be valid UTF-8. Thread-safe.
  std::vector<Span> find_all(std::string_view text) const;
  // With `content`, which is literal, in place of every match.
  std::string replace_all(std::string_view text, std::string_view content) const;

 private:
  std::shared_ptr<const void> code_;  // pcre2_code, immutable after construction
  std::string where_;
};

// The pattern that matches text literally.
std::string escape_regex(std::string_view text);

// The PCRE2 pattern with the meaning that pattern has in Oniguruma; throws Error where there is
// none known.
std::string translate_regex(std::string_view pattern, const std::string& where);

}  // namespace taper::detail
