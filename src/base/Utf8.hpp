// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace taper {

// One code point and the number of bytes it takes in UTF-8.
struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;
};

// The code point at text[position], where a well-formed sequence begins.
CodePoint read_utf8(std::string_view text, std::size_t position);

// The bytes of the well-formed sequence (Unicode 3.9, table 3-7) that begins at text[position],
// inside of the text; 0 if none does.
std::size_t utf8_length(std::string_view text, std::size_t position);

// Appends a code point up to U+10FFFF.
void append_utf8(std::string& text, char32_t code_point);

// Text with every ill-formed sequence replaced by U+FFFD: one per maximal subpart of a well-formed
// sequence (Unicode 3.9, table 3-7), as bytes.decode("utf-8", errors="replace") of Python and
// from_utf8_lossy of Rust do. A byte order mark and U+0000 stay.
std::string replace_invalid_utf8(std::string_view bytes);

bool is_valid_utf8(std::string_view bytes);

// Unicode property White_Space.
bool is_white_space(char32_t code_point);

}  // namespace taper
