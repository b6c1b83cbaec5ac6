// SPDX-License-Identifier: Apache-2.0
#include "base/Printable.hpp"

#include <cstddef>

#include "base/Text.hpp"

namespace taper {
namespace {

struct Character {
  char32_t value = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

// The well-formed character at the beginning of a text that is not empty.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t value = lead & (0xFF >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[bytes] || value > 0x10FFFF || surrogate) return {};
  return {value, bytes};
}

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
  while (!text.empty()) {
    const Character c = first_character(text);
    const std::size_t length = c.bytes == 0 ? 1 : c.bytes;
    if (c.bytes == 0)
      result += format_text("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
    else if (is_control(c.value))
      result += escape(static_cast<unsigned>(c.value));
    else
      result += text.substr(0, length);
    text.remove_prefix(length);
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
