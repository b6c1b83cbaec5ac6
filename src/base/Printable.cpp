// SPDX-License-Identifier: Apache-2.0
#include "base/Printable.hpp"

#include <cstddef>

#include "base/Text.hpp"
#include "base/Utf8.hpp"

namespace taper {
namespace {

bool is_control(char32_t c) {
  if (c == '\n' || c == '\t') return false;
  const bool turns_direction =
      (c >= 0x200E && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || turns_direction;
}

// The text with escape(value) for what is_control() names, and \xNN for bytes that are no UTF-8.
template <class Escape>
std::string replaced(std::string_view text, const Escape& escape) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      result += format_text("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[i])));
      ++i;
      continue;
    }
    const char32_t value = read_utf8(text, i).value;
    if (is_control(value))
      result += escape(static_cast<unsigned>(value));
    else
      result += text.substr(i, length);
    i += length;
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  return replaced(text, [](unsigned c) {
    return c < 0x80 ? format_text("\\x%02x", c) : format_text("\\u%04x", c);
  });
}

std::string printable_json(std::string_view json) {
  return replaced(json, [](unsigned c) { return format_text("\\u%04x", c); });
}

}  // namespace taper
