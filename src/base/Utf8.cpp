// SPDX-License-Identifier: Apache-2.0
#include "base/Utf8.hpp"

namespace taper {
namespace {

unsigned byte_at(std::string_view text, std::size_t position) {
  return static_cast<unsigned char>(text[position]);
}

// Bytes a sequence takes by its first byte, and the allowed range of the second one (table 3-7);
// length 0: ill-formed.
struct Lead {
  std::size_t length;
  unsigned second_low, second_high;
};

Lead read_lead(unsigned byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Length of the maximal subpart at position, and whether it is a whole well-formed sequence.
struct Subpart {
  std::size_t length;
  bool whole;
};

Subpart read_subpart(std::string_view text, std::size_t position) {
  const Lead lead = read_lead(byte_at(text, position));
  if (lead.length <= 1) return {1, lead.length == 1};
  std::size_t length = 1;
  for (; length < lead.length && position + length < text.size(); ++length) {
    const unsigned byte = byte_at(text, position + length);
    const unsigned low = length == 1 ? lead.second_low : 0x80;
    const unsigned high = length == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) break;
  }
  return {length, length == lead.length};
}

}  // namespace

CodePoint read_utf8(std::string_view text, std::size_t position) {
  const unsigned first = byte_at(text, position);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t value = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i)
    value = (value << 6) | (byte_at(text, position + i) & 0x3F);
  return {value, length};
}

std::size_t utf8_length(std::string_view text, std::size_t position) {
  const Subpart part = read_subpart(text, position);
  return part.whole ? part.length : 0;
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const Subpart part = read_subpart(bytes, i);
    text += part.whole ? bytes.substr(i, part.length) : std::string_view("\xEF\xBF\xBD");
    i += part.length;
  }
  return text;
}

bool is_valid_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t length = utf8_length(bytes, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

}  // namespace taper
